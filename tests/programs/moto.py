"""Moto, Amazon's services in memory, with boto3 as their client: objects, queues."""

from __future__ import annotations

import hashlib
import io
import os
import urllib.request

from tests.programs.running.application import Application, Steps


class Moto(Application):
    requirements = ("moto[server]==5.2.5", "boto3==1.44.5")
    wsgi = """
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
application = DomainDispatcherApplication(create_backend_app)
"""
    environ = (
        *("AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_DEFAULT_REGION=us-east-1"),
        *("AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1"),
    )
    workers = 1
    path = "/moto-api/"

    def drive(self) -> Steps:
        import boto3
        import botocore.exceptions
        from boto3.s3.transfer import TransferConfig

        s3 = boto3.client("s3", endpoint_url=self.url)
        s3.create_bucket(Bucket="files")
        content = os.urandom(12 << 20)
        parts = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
        s3.upload_fileobj(io.BytesIO(content), "files", "ä/b c.bin", Config=parts)
        received = io.BytesIO()
        s3.download_fileobj("files", "ä/b c.bin", received, Config=parts)
        yield "upload in parts", [len(content), received.getvalue() == content]
        part = s3.get_object(Bucket="files", Key="ä/b c.bin", Range="bytes=1000-1999")
        yield "range", [part["ContentRange"], part["Body"].read() == content[1000:2000]]
        s3.put_object(Bucket="files", Key="small", Body=b"", Metadata={"colour": "red"})
        head = s3.head_object(Bucket="files", Key="small")
        yield "head", [head["ContentLength"], head["Metadata"], head["ETag"]]
        # With `Expect: 100-continue`.
        stored = s3.put_object(
            Bucket="files", Key="summed", Body=io.BytesIO(bytes(2 << 20)), ChecksumAlgorithm="CRC32"
        )
        yield "upload with a checksum", [stored["ETag"], stored["ChecksumCRC32"]]
        link = s3.generate_presigned_url("get_object", {"Bucket": "files", "Key": "summed"})
        with urllib.request.urlopen(link) as response:
            yield "signed link", hashlib.sha256(response.read()).hexdigest()
        listed = s3.get_paginator("list_objects_v2").paginate(
            Bucket="files", PaginationConfig={"PageSize": 1}
        )
        yield "pages of a list", [each["Key"] for page in listed for each in page["Contents"]]
        try:
            s3.get_object(Bucket="files", Key="missing")
        except botocore.exceptions.ClientError as error:
            yield "error", error.response["Error"]["Code"]
        s3.delete_object(Bucket="files", Key="small")
        yield "deleted", s3.list_objects_v2(Bucket="files")["KeyCount"]

        sqs = boto3.client("sqs", endpoint_url=self.url)
        queue = sqs.create_queue(QueueName="jobs")["QueueUrl"]
        sqs.send_message(QueueUrl=queue, MessageBody="✓")
        yield "queue", sqs.receive_message(QueueUrl=queue)["Messages"][0]["Body"]
