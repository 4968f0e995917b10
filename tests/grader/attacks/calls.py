"""Attacks in a single statement, which is the body of `double(x)`."""

CALLS = {
    # Leaves in the call as a program would. An error like any other.
    "03_system_exit_in_call": "raise SystemExit(0)",
    # Raises exceptions in a group, which no other built-in type describes. An error like any other.
    "04_exception_group": 'raise BaseExceptionGroup("two", [SystemExit(0), KeyboardInterrupt()])',
    # Raises what ends a generator, and pytest's hooks are generators. An error.
    "04_generator_exit": "raise GeneratorExit",
    # Pretends that the instructor pressed Ctrl-C. The run must go on.
    "04_keyboard_interrupt": "raise KeyboardInterrupt",
    # Raises what ends an iteration, and pytest's hooks are generators. An error.
    "04_stop_iteration": "raise StopIteration",
    # Ends its own process by abort(). A crash.
    "06_abort": "os.abort()",
    # Sends itself the signal by which the system ends who used up its time. A crash, no timeout.
    "06_out_of_time": "signal.raise_signal(signal.SIGXCPU)",
    # Reads an address that nothing is at. A crash.
    "06_segfault": "faulthandler._sigsegv()",
    # Stops its own process, which then neither answers nor ends. A timeout.
    "06_stop_itself": "signal.raise_signal(signal.SIGSTOP)",
    # Calls itself for ever. An error.
    "09_recursion": "return double(x)",
    # Skips the test with unittest's exception. A skip is never a pass.
    "10_unittest_skip": 'raise unittest.SkipTest("not today")',
    # Returns the right numbers in a shape that broadcasts. The shape is wrong.
    "23_broadcastable_shape": "return (x + x)[None]",
    # Returns a tensor without entries, all of which are right. The shape is wrong.
    "23_no_entries": "return (x + x)[:0]",
    # Returns the right numbers in another dtype. The dtype is wrong.
    "23_other_dtype": "return (x + x).half()",
    # Returns infinity; its difference from any number is not a number. It is wrong.
    "24_infinity": 'return x * float("inf")',
    # Returns NaN, which no difference is greater than. It is wrong.
    "24_nan": 'return x * float("nan")',
    # Returns a complex tensor with the right numbers. It isn't of the right dtype.
    "26_complex": "return (x + x).to(torch.complex64)",
    # Returns a tensor of 2^40 entries that takes four bytes. Too large: bad output.
    "26_expanded": "return x.new_zeros(1).expand(1 << 40)",
    # Returns the right tensor, as a parameter in a graph. Right is right.
    "26_in_a_graph": "return torch.nn.Parameter(x + x) * 1",
    # Returns a quantised tensor. It isn't of the right dtype.
    "26_quantised": "return torch.quantize_per_tensor((x + x).float(), 0.1, 0, torch.qint8)",
    # Returns a sparse tensor with the right numbers. It isn't a plain one: bad output.
    "26_sparse": "return (x + x).to_sparse()",
    # Returns a tensor without data, of the right shape and dtype. There is nothing to be right.
    "26_without_data": 'return torch.empty_like(x, device="meta")',
    # Returns an endless generator. It isn't a tensor; the grader does not iterate over it.
    "28_endless_generator": "return (n for n in itertools.count())",
    # Returns a dictionary of a million entries. Bad output.
    "28_huge_dictionary": "return dict.fromkeys(range(10**6))",
    # Returns a tensor of a million entries instead of one. The shape is wrong.
    "28_huge_tensor": "return torch.ones(1 << 20, dtype=torch.uint8)",
    # Raises an exception with terminal control characters. They are replaced.
    "30_control_characters": (
        r'raise ValueError("\x1b]0;title\x07\x1b[2J\u202egnp.exe\ud800 \r passed")'
    ),
    # Raises an exception with a text of 50 million characters. The text is cut.
    "30_huge_text": 'raise ValueError("x" * 50_000_000)',
    # Knows the visible answers by heart. That earns the visible points.
    "44_hard_coded": "return torch.full(x.shape, 2.0)",
    # Never comes back from C, where Python's signal handlers don't run. A timeout.
    "48_busy_in_c": 'return re.match("(a*)*b", "a" * 64)',
    # Asks for a terabyte at once. Out of memory.
    "50_memory_at_once": "return bytearray(10**12)",
    # Asks the system for a terabyte, which it refuses in its own words. Out of memory.
    "50_memory_of_a_mapping": "return mmap.mmap(-1, 1 << 40)",
    # Asks PyTorch for a terabyte at once. Out of memory.
    "50_memory_of_torch": "return torch.ones(10**12)",
}

HEAD = "import faulthandler, itertools, mmap, os, re, signal, unittest\nimport torch\n"

SOURCES = {name: f"{HEAD}def double(x):\n    {body}\n" for name, body in CALLS.items()}
