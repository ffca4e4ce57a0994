# Who went over the travel budget this quarter? Some two thousand expense lines, one short answer.
import asyncio

engineers = await mcp__hr__list_engineers()
reports = await asyncio.gather(
    *(
        mcp__hr__get_expenses(employee_id=engineer["id"], from_="2025-01-01", to="2025-03-31")
        for engineer in engineers
    )
)

lines = sum(len(report["expenses"]) for report in reports)
print(f"{len(engineers)} engineers, {lines} expense lines")
for engineer, report in zip(engineers, reports):
    spent = sum(
        line["amount"]
        for line in report["expenses"]
        if line["category"] == "travel" and line["status"] == "approved"
    )
    if spent > engineer["travel_budget"]:
        print(f"{engineer['name']} spent ${spent:,.2f} of ${engineer['travel_budget']:,}")
