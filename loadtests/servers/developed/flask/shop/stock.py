"""What the shop has."""

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
