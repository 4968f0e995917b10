"""Attacks in a single statement, which is the body of `double(x)`."""

CALLS = {
    # Raises SystemExit in a call. The result is an error.
    "03_system_exit_in_call": "raise SystemExit(0)",
    # Raises a group of exceptions that end programs. The result is an error.
    "04_exception_group": 'raise BaseExceptionGroup("two", [SystemExit(0), KeyboardInterrupt()])',
    # Raises GeneratorExit, which could end pytest's hooks (generators). The result is an error.
    "04_generator_exit": "raise GeneratorExit",
    # Pretends that the instructor pressed Ctrl-C. The result is an error, and the run continues.
    "04_keyboard_interrupt": "raise KeyboardInterrupt",
    # Raises StopIteration, which could end pytest's hooks (generators). The result is an error.
    "04_stop_iteration": "raise StopIteration",
    # Ends its own process by abort(). The result is a crash.
    "06_abort": "os.abort()",
    # Sends itself SIGXCPU, as the kernel does at the CPU time limit. The result is a crash.
    "06_out_of_time": "signal.raise_signal(signal.SIGXCPU)",
    # Reads an invalid address. The result is a crash.
    "06_segfault": "faulthandler._sigsegv()",
    # Stops its own process, which then neither responds nor exits. The result is a timeout.
    "06_stop_itself": "signal.raise_signal(signal.SIGSTOP)",
    # Calls itself endlessly. The result is an error.
    "09_recursion": "return double(x)",
    # Skips the test with unittest's exception. The result is an error.
    "10_unittest_skip": 'raise unittest.SkipTest("not today")',
    # Returns the right numbers in a shape that broadcasts. The shape is wrong.
    "23_broadcastable_shape": "return (x + x)[None]",
    # Returns a tensor without entries, so that no entry is wrong. The shape is wrong.
    "23_no_entries": "return (x + x)[:0]",
    # Returns the right numbers in another dtype. The dtype is wrong.
    "23_other_dtype": "return (x + x).half()",
    # Returns infinity. The value is wrong.
    "24_infinity": 'return x * float("inf")',
    # Returns NaN. It is wrong, although no comparison with NaN is true.
    "24_nan": 'return x * float("nan")',
    # Returns a complex tensor with the right numbers. The dtype is wrong.
    "26_complex": "return (x + x).to(torch.complex64)",
    # Returns a tensor of 2^40 entries that takes a few bytes. It is too large, so it is bad output.
    "26_expanded": "return x.new_zeros(1).expand(1 << 40)",
    # Returns the right tensor, computed from a parameter, so it requires a gradient. It passes.
    "26_in_a_graph": "return torch.nn.Parameter(x + x) * 1",
    # Returns a quantized tensor. The dtype is wrong.
    "26_quantised": "return torch.quantize_per_tensor((x + x).float(), 0.1, 0, torch.qint8)",
    # Returns a sparse tensor with the right numbers. The test fails.
    "26_sparse": "return (x + x).to_sparse()",
    # Returns a tensor of the right shape and dtype without data. It is wrong.
    "26_without_data": 'return torch.empty_like(x, device="meta")',
    # Returns an endless generator. It isn't a tensor; the grader does not iterate over it.
    "28_endless_generator": "return (n for n in itertools.count())",
    # Returns a dictionary of a million entries. The result is bad output.
    "28_huge_dictionary": "return dict.fromkeys(range(10**6))",
    # Returns a tensor of a million entries instead of one. The shape is wrong.
    "28_huge_tensor": "return torch.ones(1 << 20, dtype=torch.uint8)",
    # Raises an exception with terminal control characters. The message replaces them.
    "30_control_characters": (
        r'raise ValueError("\x1b]0;title\x07\x1b[2J\u202egnp.exe\ud800 \r passed")'
    ),
    # Raises an exception with a text of 50 million characters. The message is shortened.
    "30_huge_text": 'raise ValueError("x" * 50_000_000)',
    # Contains the answers of the visible tests. It gets the points of the visible tests only.
    "44_hard_coded": "return torch.full(x.shape, 2.0)",
    # Runs endlessly in C, where Python's signal handlers don't run. The result is a timeout.
    "48_busy_in_c": 'return re.match("(a*)*b", "a" * 64)',
    # Allocates a terabyte at once. The result is "out of memory".
    "50_memory_at_once": "return bytearray(10**12)",
    # Maps a terabyte, for which the system raises OSError. The result is "out of memory".
    "50_memory_of_a_mapping": "return mmap.mmap(-1, 1 << 40)",
    # Creates a tensor of several terabytes. The result is "out of memory".
    "50_memory_of_torch": "return torch.ones(10**12)",
}

HEAD = "import faulthandler, itertools, mmap, os, re, signal, unittest\nimport torch\n"

SOURCES = {name: f"{HEAD}def double(x):\n    {body}\n" for name, body in CALLS.items()}
