"""The API reference renders in a real browser under our policy, below the site's header."""

from collections.abc import Callable

from playwright.sync_api import expect

from accounts.models import User
from tests.harness.browser_page import AXE, VIEWPORTS, BrowserPage

# Of what is inside Swagger UI only the landmarks: its colours and controls are its own.
OURS = """async () => {
    const found = async (context, rules) => (await axe.run(context, {
        preload: false, resultTypes: ["violations"], runOnly: rules,
    })).violations.map(v => `${v.id}: ` + v.nodes.map(n => n.target.join(" ")).join(" | "));
    const all = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const places = ["landmark-no-duplicate-main", "landmark-main-is-top-level", "heading-order"];
    return [...await found({exclude: ["#swagger-ui"]}, all), ...await found(document, places)];
}"""


def test_the_reference_shows_routes_and_a_route_shows_its_fields(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    log_in(alice)
    page = watch.page
    page.goto(f"{watch.base}/api/docs")
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    route = page.locator("#operations-outcomes-report_outcome")
    expect(route).to_be_visible()
    route.locator(".opblock-summary").click()
    expect(route.get_by_text("Idempotency-Key").first).to_be_visible()
    expect(route.get_by_text("Needs the scope report.")).to_be_visible()
    page.evaluate(AXE)
    for scheme, width in VIEWPORTS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]  # one of its words
        page.set_viewport_size({"width": width, "height": 800})
        watch.look("/api/docs", axe=False)
        assert page.evaluate(OURS) == []


def test_what_opens_over_the_reference_stands_in_the_window_in_the_dark(
    watch: BrowserPage, transactional_db: None
) -> None:
    page = watch.page
    page.emulate_media(color_scheme="dark")
    page.goto(f"{watch.base}/api/docs")
    page.get_by_role("button", name="Authorize").first.click()
    dialog = page.locator(".modal-ux")
    expect(dialog).to_be_visible()
    expect(dialog).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    watch.look("/api/docs", axe=False)
