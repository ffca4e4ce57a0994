//! What models commonly write, and what comes of it (P11).

use mock_servers::{Compute, Fault, Reply, Scenario, Tool};

use crate::program::{echo, fails, prints};
use crate::support::{PATIENCE, Ptc};

// contract: P11
#[test]
fn what_models_commonly_write_works() {
    prints(&[
        (
            "import asyncio\nasync def main():\n    print(await mcp__s__echo(a=1))\nasyncio.run(main())",
            "{'a': 1}",
        ),
        (
            "import asyncio\nasync def main():\n    return await mcp__s__echo(a=1)\nif __name__ == '__main__':\n    print(asyncio.run(main()))",
            "{'a': 1}",
        ),
        (
            "import asyncio\nasync def main():\n    return await mcp__s__echo(a=2)\nawait mcp__s__echo()\nprint(asyncio.run(main()))",
            "{'a': 2}",
        ),
        (
            "import asyncio\nasync def main():\n    return await mcp__s__echo(a=3)\nprint(asyncio.get_event_loop().run_until_complete(main()))",
            "{'a': 3}",
        ),
        (
            "import asyncio\nprint(await asyncio.gather(*(mcp__s__echo(i=i) for i in range(3))))",
            "[{'i': 0}, {'i': 1}, {'i': 2}]",
        ),
        (
            "import asyncio\nprint(await asyncio.gather(mcp__s__echo(a=1), asyncio.sleep(0, 'x'), return_exceptions=True))",
            "[{'a': 1}, 'x']",
        ),
        (
            "import asyncio\nt = asyncio.create_task(mcp__s__echo(a=4))\nprint(await t)",
            "{'a': 4}",
        ),
        (
            "import asyncio\nprint(await asyncio.wait_for(mcp__s__echo(a=5), 60))",
            "{'a': 5}",
        ),
        (
            "import asyncio\nfor done in asyncio.as_completed([mcp__s__echo(a=6)]): print(await done)",
            "{'a': 6}",
        ),
        (
            "import asyncio\nsem = asyncio.Semaphore(2)\nasync def one(i):\n    async with sem: return (await mcp__s__echo(i=i))['i']\nprint(await asyncio.gather(*map(one, range(5))))",
            "[0, 1, 2, 3, 4]",
        ),
        (
            "import asyncio\nprint(await asyncio.to_thread(sum, [1, 2]))",
            "3",
        ),
        (
            "import asyncio, functools\nprint(await asyncio.get_running_loop().run_in_executor(None, functools.partial(max, 1, 2)))",
            "2",
        ),
        (
            "import asyncio, threading\nout = []\nt = threading.Thread(target=lambda: out.append(asyncio.run(mcp__s__echo(a=7))))\nt.start(); t.join()\nprint(out)",
            "[{'a': 7}]",
        ),
        (
            "import asyncio\nloop = asyncio.new_event_loop()\nasync def main(): return await mcp__s__echo(a=8)\nimport threading\nout = []\nt = threading.Thread(target=lambda: out.append(loop.run_until_complete(main())))\nt.start()\nawait asyncio.to_thread(t.join)\nprint(out, await mcp__s__echo(a=9))",
            "[{'a': 8}] {'a': 9}",
        ),
        (
            "async def pages():\n    for i in range(2): yield await mcp__s__echo(p=i)\nprint([p['p'] async for p in pages()])",
            "[0, 1]",
        ),
        (
            "from contextlib import asynccontextmanager\n@asynccontextmanager\nasync def row(i): yield await mcp__s__echo(i=i)\nasync with row(1) as r: print(r)",
            "{'i': 1}",
        ),
        (
            "try:\n    await mcp__s__echo()\nfinally:\n    print('cleaned')",
            "cleaned",
        ),
        (
            "calls = [mcp__s__echo(i=i) for i in range(2)]\nprint([await c for c in calls])",
            "[{'i': 0}, {'i': 1}]",
        ),
    ]);
}

// contract: P11
#[test]
fn a_task_group_works_where_the_interpreter_has_it() {
    prints(&[(
        "
        import asyncio
        if hasattr(asyncio, 'TaskGroup'):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(mcp__s__echo(i=i)) for i in range(2)]
            print([task.result() for task in tasks])
        else:
            print([{'i': 0}, {'i': 1}])
        ",
        "[{'i': 0}, {'i': 1}]",
    )]);
}

// contract: P11
#[test]
fn a_forgotten_await_ends_in_an_error_that_says_await() {
    fails(&[
        ("mcp__s__echo(a=1)", "await mcp__s__echo("),
        ("x = mcp__s__echo(a=1)", "await mcp__s__echo("),
        (
            "x = mcp__s__echo(a=1)\nprint(x['a'])",
            "await mcp__s__echo(",
        ),
        (
            "x = mcp__s__echo(a=1)\nfor row in x: print(row)",
            "await mcp__s__echo(",
        ),
        (
            "x = mcp__s__echo(a=1)\nprint(x.get('a'))",
            "await mcp__s__echo(",
        ),
        (
            "x = mcp__s__echo(a=1)\nprint(f'{x}')",
            "await mcp__s__echo(",
        ),
        (
            "x = mcp__s__echo(a=1)\nprint(len(x))",
            "await mcp__s__echo(",
        ),
        ("x = mcp__s__echo(a=1)\nif x: pass", "await mcp__s__echo("),
        ("x = mcp__s__echo(a=1)\nx + 1", "await mcp__s__echo("),
        ("x = mcp__s__echo(a=1)\n'a' in x", "await mcp__s__echo("),
        ("import json\nx = mcp__s__echo(a=1)\njson.dumps(x)", "await"),
        ("import json\nx = mcp__s__echo(a=1)\njson.loads(x)", "await"),
        ("x = mcp__s__echo(a=1)\nemit(x)", "await mcp__s__echo("),
        ("x = mcp__s__echo(a=1)\nsorted(x)", "await mcp__s__echo("),
        (
            "x = list_callable_tools()\nprint(x[0])",
            "await list_callable_tools(",
        ),
        (
            "def f(): return mcp__s__echo(a=1)\nf()",
            "await mcp__s__echo(",
        ),
        ("async def main(): print(1)\nmain()", "await main("),
    ]);
}

// contract: P11 D4
#[test]
fn giving_up_on_a_call_cancels_it_downstream() {
    let scenario =
        echo().tool(Tool::new("hang").reply(Reply::fault(Fault::Hang(Default::default()))));
    let mut session = Ptc::new().stdio("s", scenario).start();
    let result = session.execute(
        "
        import asyncio
        try:
            await asyncio.wait_for(mcp__s__hang(), 0.2)
        except asyncio.TimeoutError:
            print('gave up', await mcp__s__echo(a=1))
        ",
    );
    assert_eq!(result.output(), "gave up {'a': 1}");
    session
        .journal("s")
        .wait_until(|journal| journal.cancelled().len() == 1, PATIENCE);
    session.close();
}

// contract: P11
#[test]
fn two_thousand_calls_in_one_gather_all_come_back() {
    let scenario = Scenario::new()
        .tool(Tool::new("echo").reply(Reply::compute(Compute::Echo(Default::default()))));
    let result = Ptc::new()
        .stdio("s", scenario)
        .execution("max_tool_calls", 2000)
        .execute(
            "
        import asyncio
        rows = await asyncio.gather(*(mcp__s__echo(i=i) for i in range(2000)))
        print([row['i'] for row in rows] == list(range(2000)))
        ",
        );
    assert_eq!(result.output(), "True");
    assert_eq!(result.calls().len(), 2000);
}
