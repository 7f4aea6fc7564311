"""The JSON storage service Kinto on PostgreSQL, with the library kinto-http as its client."""

from __future__ import annotations

from pathlib import Path

from tests.programs.running.application import Application, Steps
from tests.support.postgres import INSTALLED, USER, postgres

CONFIGURATION = """
[app:main]
use = egg:kinto
kinto.includes = kinto.plugins.default_bucket kinto.plugins.accounts kinto.plugins.history
kinto.storage_backend = kinto.core.storage.postgresql
kinto.storage_url = {database}
kinto.cache_backend = kinto.core.cache.postgresql
kinto.cache_url = {database}
kinto.permission_backend = kinto.core.permission.postgresql
kinto.permission_url = {database}
kinto.userid_hmac_secret = secret
kinto.default_bucket_hmac_secret = salt
kinto.bucket_create_principals = system.Authenticated
kinto.paginate_by = 20
kinto.trailing_slash_redirect_enabled = true
multiauth.policies = account
multiauth.policy.account.use = kinto.plugins.accounts.AccountsPolicy
kinto.account_create_principals = system.Everyone
"""


class Kinto(Application):
    requirements = ("kinto[postgresql]==26.5.0", "kinto-http==11.11.0")
    wsgi = """
from kinto import main
from pyramid.paster import get_app
application = get_app("kinto.ini")
"""
    needs = (str(INSTALLED),)
    path = "/v1/"

    def prepare(self) -> None:
        database = f"postgresql://{USER}@/postgres?host={Path.cwd()}/database"
        Path("kinto.ini").write_text(CONFIGURATION.format(database=database))

    def drive(self) -> Steps:
        # The server connects when it is first asked for data.
        with postgres() as folder:
            Path("database").symlink_to(folder)
            self.run("kinto", "migrate", "--ini", "kinto.ini")
            yield from self.store()

    def store(self) -> Steps:
        import requests
        from kinto_http import Client
        from kinto_http.exceptions import KintoException
        from kinto_http.patch_type import JSONPatch

        root = f"{self.url}/v1"
        place = {"bucket": "shop", "collection": "goods"}

        account = requests.put(f"{root}/accounts/ann", json={"data": {"password": "secret"}})
        yield "account", [account.status_code, account.json()["data"]["id"]]
        client = Client(server_url=root, auth=("ann", "secret"))
        information = client.server_info()
        yield "server", [information["url"], sorted(information["capabilities"])]
        yield "bucket", client.create_bucket(id="shop")["permissions"]
        yield "collection", client.create_collection(id="goods", bucket="shop")["data"]["id"]
        for number in range(30):
            data = {"number": number, "text": "ü✓" * number * 100}
            client.create_record(id=f"record-{number:02}", data=data, **place)
        records = client.get_records(**place)
        yield "pages of records", sorted((each["id"], len(each["text"])) for each in records)
        stamp = client.get_records_timestamp(**place)
        yield "time of a change", stamp.isdigit()
        unchanged = client.session.request(
            "get",
            "/buckets/shop/collections/goods/records",
            headers={"If-None-Match": f'"{stamp}"'},
        )
        yield "unchanged", unchanged[0]
        change = JSONPatch([{"op": "replace", "path": "/data/number", "value": 700}])
        yield "part", client.patch_record(id="record-01", changes=change, **place)["data"]["number"]
        with client.batch() as batch:
            for number in range(60):
                batch.create_record(id=f"more-{number:02}", data={"number": number}, **place)
        yield "batch", len(client.get_records(**place))
        yield "deleted", client.delete_record(id="record-02", **place)["deleted"]
        try:
            yield "no record", client.get_record(id="record-02", **place)
        except KintoException as error:
            yield "no record", [error.response.status_code, error.response.json()["errno"]]
        slash = requests.get(f"{root}/buckets/", allow_redirects=False)
        yield "redirect", [slash.status_code, slash.headers["Location"]]
