"""The site in build/site (or in SITE), as a reader sees it: in Chromium, on a large screen and on a phone."""

import functools
import http.server
import json
import os
import pathlib
import subprocess
import threading
import urllib.parse

import pytest
from chromium import Chromium

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = pathlib.Path(os.environ.get("SITE", ROOT / "build" / "site"))
PICTURES = SITE.parent
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))
OURS = [page for page in PAGES if not page.startswith("source/")]  # without listings of sources
PHONE = 390

# What a page has: links, names of its elements, and whether it is wider than the screen.
LOOK = """({links: Array.from(document.querySelectorAll('a[href]'), a => a.href),
            images: Array.from(document.images).filter(i => !i.naturalWidth).map(i => i.src),
            own: Array.from(document.querySelectorAll('article [id]'), e => e.id),
            ids: Array.from(document.querySelectorAll('[id]'), e => e.id),
            title: document.title, words: document.body.innerText.length})"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="session")
def browser(address):
    chromium = Chromium(address)
    yield chromium
    chromium.close()


@pytest.fixture(scope="session")
def looks(browser, address):
    """What every page has and reported, by its name."""
    browser.size(1280, 900)
    found = {}
    for page in PAGES:
        browser.open(address + page)
        found[page] = {**browser.evaluate(LOOK), "problems": browser.problems}
    return found


def test_there_is_a_page_for_everything():
    wanted = ["index", "docs/install", "docs/tutorial", "docs/choosing", "docs/definition", "docs/glossary",
              "docs/design", "docs/performance", "docs/api", "reference/python", "reference/command", "CHANGELOG"]
    for folder in ("docs/guides", "docs/kernels"):
        wanted += [f"{folder}/{path.stem}" for path in (ROOT / folder).glob("*.md")]
    assert not {f"{name}.html" for name in wanted} - set(PAGES)


def test_pages_report_no_errors(looks):
    assert not {page: look["problems"] for page, look in looks.items() if look["problems"]}


def test_pages_have_a_title_and_text(looks):
    assert not [page for page, look in looks.items() if not look["title"] or look["words"] < 100]


def test_every_name_of_a_page_is_given_once(looks):
    twice = {page: {name for name in look["own"] if look["own"].count(name) > 1} for page, look in looks.items()}
    assert not {page: names for page, names in twice.items() if names}


def test_images_are_shown(looks):
    assert not {page: look["images"] for page, look in looks.items() if look["images"]}


def test_links_lead_somewhere(looks, address):
    broken, links = [], 0
    for page, look in looks.items():
        for link in look["links"]:
            if not link.startswith(address):
                continue
            links += 1
            path, _, anchor = link.removeprefix(address).partition("#")
            path = urllib.parse.unquote(path.partition("?")[0]) or "index.html"
            if not (SITE / path).is_file():
                broken.append(f"{page}: {path}")
            elif anchor and path in looks and urllib.parse.unquote(anchor) not in looks[path]["ids"]:
                broken.append(f"{page}: {path}#{anchor}")
    assert not broken
    assert links > 1000


def test_every_page_is_two_clicks_from_the_start(looks, address):
    """Without listings of sources and the generator's own pages."""
    def behind(pages):
        links = {link.partition("#")[0] for page in pages for link in looks[page]["links"]}
        return {link.removeprefix(address) or "index.html" for link in links if link.startswith(address)} & set(looks)

    reached = behind(behind(["index.html"]) | {"index.html"})
    far = set(OURS) - reached - {"genindex.html", "py-modindex.html", "search.html"}
    assert not far, sorted(far)


def test_no_page_needs_another_host(looks, address):
    """No script, style, font or picture comes from elsewhere (Chromium reports those as problems), nor is one named."""
    named = [page for page in PAGES for tag in ("<script src=\"http", "<link rel=\"stylesheet\" href=\"http",
                                                "<img src=\"http")
             if tag in (SITE / page).read_text(encoding="utf-8").replace(" type=\"text/css\"", "")]
    assert not named


WIDE = f"""[document.scrollingElement.scrollWidth > {PHONE} ? 'the page' : '',
    ...Array.from(document.querySelectorAll('article *')).filter(e => e.getBoundingClientRect().right > {PHONE} + 1 &&
        !e.parentElement.closest('pre, .table-wrapper')).map(e => e.outerHTML.slice(0, 80))
    ].filter(Boolean).slice(0, 3)"""


def test_pages_fit_a_phone(browser, address):
    """Only tables and blocks of code scroll by themselves."""
    browser.size(PHONE, 844, phone=True)
    wide = {}
    for page in OURS:
        browser.open(address + page)
        if found := browser.evaluate(WIDE):
            wide[page] = found
    assert not wide


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_scheme_is_the_readers(browser, address, scheme):
    browser.size(1280, 900)
    browser.scheme(scheme)
    browser.open(address + "docs/tutorial.html")
    shade = browser.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(shade[:3]) < 3 * 100) == (scheme == "dark"), shade
    browser.scheme("light")


@pytest.mark.parametrize("words, page", [("leverage", "Solvers"), ("least squares", "Least squares"), ("MPI", "MPI"),
                                         ("dtype", "The C interface")])
def test_the_search_finds(browser, address, words, page):
    browser.size(1280, 900)
    browser.open(address + "search.html?q=" + urllib.parse.quote(words))
    for _ in range(100):
        titles = browser.evaluate("Array.from(document.querySelectorAll('#search-results li a'), a => a.innerText)")
        if titles:
            break
        browser.evaluate("new Promise(done => setTimeout(done, 100))")
    assert any(page in title for title in titles), titles
    assert not browser.problems


@pytest.mark.parametrize("coherent", [False, True])
def test_the_calculator_gives_what_the_command_gives(browser, address, coherent):
    command = ROOT / "build" / "release" / "cli" / "flashsketch"
    browser.open(address + "docs/choosing.html")
    for n in (1, 8, 50, 300, 5000):
        for error in (0.1, 0.5, 0.9):
            for probability in (0.5, 0.05, 0.001):
                arguments = ["plan", "-n", str(n), "--error", str(error), "--probability", str(probability), "--json"]
                told = json.loads(subprocess.run([command, *arguments, *["--coherent"] * coherent], check=True,
                                                 capture_output=True, text=True).stdout)
                found = browser.evaluate(
                    f"planner.plan({n}, {error}, {probability}, {'true' if coherent else 'false'})")
                assert [found[name] for name in ("k", "kappa", "s")] == [told[name] for name in ("k", "kappa", "s")]
                assert found["exceeded"] == pytest.approx(told["exceeded"], rel=1e-6)


def test_the_calculator_shows_what_is_asked(browser, address):
    browser.open(address + "docs/choosing.html")

    def shown(**values):
        for name, value in values.items():
            browser.evaluate(f"document.querySelector('form.calculator').elements['{name}'].value = '{value}'")
        browser.evaluate("document.querySelector('form.calculator').dispatchEvent(new Event('input'))")
        return browser.evaluate("document.querySelector('table.calculator').innerText")

    assert "time on the GPU" in shown(n=200, error=0.3)
    assert "NaN" not in shown(n=200, error=0.3) and "must be" in shown(error=2)
    assert not browser.problems


def test_pictures_for_a_person_to_look_at(browser, address):
    """build/site-desktop.png and build/site-phone.png."""
    browser.size(1280, 2200)
    browser.open(address + "index.html")
    browser.screenshot(PICTURES / "site-desktop.png")
    browser.size(PHONE, 2200, phone=True)
    browser.scheme("dark")
    browser.open(address + "docs/choosing.html")
    browser.screenshot(PICTURES / "site-phone.png")
    browser.scheme("light")
    assert (PICTURES / "site-desktop.png").stat().st_size > 10000
    assert (PICTURES / "site-phone.png").stat().st_size > 10000
