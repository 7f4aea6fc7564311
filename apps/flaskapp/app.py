"""A small Flask application: a page, a form, JSON, and its own page for 404."""

from __future__ import annotations

from flask import Flask, Response, jsonify, redirect, render_template_string, request, url_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from werkzeug.exceptions import NotFound
    from werkzeug.wrappers import Response as Redirect

application = Flask(__name__)

PAGE = """\
<!doctype html>
<title>Greetings</title>
<h1>Hello, {{ name }}!</h1>
<form method="post" action="{{ url_for('greet') }}">
<input name="name" aria-label="name"> <button>Greet</button>
</form>
"""


@application.get("/")
@application.get("/hello/<name>")
def hello(name: str = "world") -> str:
    """Greet, and ask for another name."""
    return render_template_string(PAGE, name=name)


@application.post("/greet")
def greet() -> Redirect:
    """Go to the page of the name that was sent."""
    return redirect(url_for("hello", name=request.form["name"] or "nobody"), code=303)


@application.post("/sum")
def total() -> Response:
    """Add up `{"numbers": [...]}`."""
    return jsonify(sum=sum(request.get_json()["numbers"]))


@application.errorhandler(404)
def lost(error: NotFound) -> tuple[str, int]:
    """Say so politely."""
    return "<!doctype html>\n<title>Not here</title>\n<h1>Nobody of that name</h1>\n", 404
