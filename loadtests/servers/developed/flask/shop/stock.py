"""A module with a database table that the study `develop` edits; `app.py` imports it."""

from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

VERSION = "000000"


def text(main, read):
    return f"main {main} sub {VERSION} read {read}\n".encode("ascii")


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "items"

    name: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int]
