# How has revenue developed over the last four quarters? Three calls, three lines.
for ticker in ["AMZN", "MSFT", "GOOG"]:
    quarters = await mcp__finance__query_financials(
        ticker=ticker, statement="income", period="quarter", limit=4
    )
    trend = " → ".join(f"${quarter['revenue'] / 1e9:.1f}B" for quarter in quarters)
    print(f"{ticker}: {trend}")
