"""A Flask project that the study `develop` edits: answers with versions of its modules."""

import time

import pandas
from flask import Flask, Response, request
from shop import stock
from sqlalchemy.orm import Session

VERSION = "000000"

app = Flask(__name__)
sold = pandas.DataFrame({"item": ["pen", "ink"], "count": [3, 1]}).set_index("item")


@app.route("/", defaults={"path": ""}, methods=["GET", "POST"])
@app.route("/<path:path>", methods=["GET", "POST"])
def index(path):
    if path == "slow":
        time.sleep(0.05)
    return Response(stock.text(VERSION, len(request.get_data())), mimetype="text/plain")


def left(engine):
    with Session(engine) as session:
        return {item.name: item.count for item in session.query(stock.Item)}
