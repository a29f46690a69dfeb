"""The API reference renders in a real browser under our policy."""

from playwright.sync_api import expect

from tests.browser.watch import Watch


def test_the_reference_shows_routes_and_a_route_shows_its_fields(
    watch: Watch, transactional_db: None
) -> None:
    page = watch.page
    page.goto(f"{watch.base}/api/docs")
    route = page.locator("#operations-playbooks-report_outcome")
    expect(route).to_be_visible()
    route.locator(".opblock-summary").click()
    expect(route.get_by_text("Idempotency-Key").first).to_be_visible()
    expect(route.get_by_text("Needs the scope write.")).to_be_visible()
    watch.look("/api/docs", axe=False)
