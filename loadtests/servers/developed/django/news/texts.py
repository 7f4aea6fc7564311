VERSION = "000000"


def text(main, read):
    return f"main {main} sub {VERSION} read {read}\n".encode("ascii")
