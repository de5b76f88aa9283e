//! The command line of breccia.

mod command_line;

use breccia::commands::inspect;
use breccia::commands::report::ReportArguments;
use breccia::commands::run::{self, Ending, Job, Log, RunError};
use breccia::lanes::Instructions;
use breccia::setup::{self, memory};
use breccia::{input, output};
use clap::Parser;
use command_line::{CommandLine, RunArguments, Task};
use decomposition::sigterm::held_back;
use decomposition::{Comm, Metered, Solo, World, watch};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A wrong case.
const INPUT: u8 = 1;
/// A file that cannot be read or written.
const FILES: u8 = 4;
/// No memory.
const OUT_OF_MEMORY: i32 = 7;
/// A panic, as Rust has it.
const PANIC: i32 = 101;

/// The memory of the system. A rank that gets none says so and ends all ranks.
///
/// That there was none is only known here, but here it may still be let pass (`try_reserve`). What does not
/// let it pass goes to `abort`, in this thread and at once: the handler of SIGABRT acts then. As the signal
/// comes from `abort` and not from outside, the handler may call what it likes (POSIX, "Signal Concepts"),
/// `MPI_Abort` too.
struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

thread_local! {
    /// Bytes that this thread was refused last; 0 if none. Takes no memory itself.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// For what a rank says when it can no longer ask.
static RANK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.realloc(place, layout, size) }, size)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

/// What a step gives back stays with the process: the next step asks for as much, and pages that come from
/// the system are cleared first. With a million spheres on one thread that takes a fifth of a step's
/// processor time; kept, memory at its peak grows by a tenth.
#[cfg(target_env = "gnu")]
fn keep_memory() {
    use std::ffi::c_int;
    // From glibc's `malloc.h`.
    const TRIM_THRESHOLD: c_int = -1;
    const MMAP_MAX: c_int = -4;
    unsafe extern "C" {
        safe fn mallopt(setting: c_int, value: c_int) -> c_int;
    }
    // Never trimmed, never mapped piece by piece; where a setting is refused all stays as it is.
    mallopt(TRIM_THRESHOLD, -1);
    mallopt(MMAP_MAX, 0);
}

#[cfg(not(target_env = "gnu"))]
fn keep_memory() {}

/// Passes an address on, and keeps in mind if there is none.
fn granted(place: *mut u8, size: usize) -> *mut u8 {
    if place.is_null() {
        // A thread that is just ending has no such cell any more.
        let _ = REFUSED.try_with(|refused| refused.set(size));
    }
    place
}

/// In the handler of SIGABRT: ends all ranks if this thread has got no memory. Takes none itself.
fn end_if_starved() {
    let size = REFUSED.try_with(Cell::get).unwrap_or(0);
    if size == 0 {
        return;
    }
    let mut text = [0u8; 160];
    let mut rest = &mut text[..];
    let rank = RANK.load(Ordering::Relaxed);
    let _ = writeln!(rest, "error: rank {rank}: out of memory, the system refuses {size} bytes more");
    let length = 160 - rest.len();
    let _ = std::io::stderr().write_all(&text[..length]);
    watch::abort_all(OUT_OF_MEMORY);
}

fn listen_to_starvation() -> std::io::Result<()> {
    // SAFETY: the signal comes from `abort` in this program if the handler does anything, see `Memory`.
    unsafe { signal_hook::low_level::register(signal_hook::consts::SIGABRT, end_if_starved) }.map(drop)
}

fn main() -> ExitCode {
    let begun = Instant::now();
    let arguments = CommandLine::try_parse().unwrap_or_else(|error| {
        // All ranks see the same command line; one complaint is enough.
        if launched_rank().is_none_or(|rank| rank == "0") {
            error.exit();
        }
        std::process::exit(error.exit_code());
    });
    if !matches!(arguments.task, Task::Run(_)) {
        // Without it, a command that gets no memory ends all the same, with fewer words.
        let _ = listen_to_starvation();
    }
    match arguments.task {
        Task::Run(arguments) => {
            keep_memory();
            parallel(&arguments, begun)
        }
        Task::Check { case, set, nodes } => report(check(&case, &set, nodes.get())),
        Task::Schema => report(print(&format!("{:#}", input::schema()))),
        Task::Manual => report(print(&input::manual_markdown())),
        Task::Digest { path } => report(digest(&path)),
        Task::Info(arguments) => report(info(&arguments)),
        Task::Export(arguments) => report(export(&arguments)),
        Task::Report(arguments) => report(story(&arguments)),
        Task::Solve(arguments) => ExitCode::from(breccia::commands::solve::run(&arguments)),
        Task::Spread(arguments) => ExitCode::from(breccia::commands::spread::run(&arguments)),
    }
}

/// The rank that a launcher has given this process, before MPI is there to ask.
fn launched_rank() -> Option<String> {
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
}

/// A message for people, and the exit code.
type Failure = (u8, String);

fn report(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            complain(&message);
            ExitCode::from(code)
        }
    }
}

/// One message, one write: those of several ranks do not mix.
fn complain(message: &str) {
    let _ = std::io::stderr().write_all(format!("error: {message}\n").as_bytes());
}

fn complain_softly(message: &str) {
    let _ = std::io::stderr().write_all(format!("note: {message}\n").as_bytes());
}

/// A reader that has gone (`| head`) is no failure; a disk that is full is.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err((FILES, format!("standard output: cannot write: {error}")))
        }
        _ => Ok(()),
    }
}

fn check(case: &Path, set: &[(String, String)], nodes: u64) -> Result<(), Failure> {
    let mut case = input::read_case_with(case, set).map_err(|errors| (INPUT, errors.to_string()))?;
    if let Some(start) = case.start.take_if(|start| !start.from.exists()) {
        let from = start.from.display();
        case.warnings
            .push(format!("{from} is not there yet; what is said here leaves the bodies from it out"));
    }
    let need = memory::Need::of(&case);
    let few = memory::thinned(&case, &need);
    let built = setup::build(few.as_ref().unwrap_or(&case), &Solo);
    let mut setup = built.map_err(|error| (INPUT, error.to_string()))?;
    if few.is_some() {
        setup.inventory.extrapolate(&case);
        case.warnings.push(
            "these are very many bodies: some of each kind were made and looked at, the masses are extrapolated, \
             and whether all fit their region was not tried"
                .into(),
        );
    }
    print(&run::describe(&case, &setup.inventory, &need))?;
    if !setup.machines.is_empty() {
        print(&setup::machine::describe(setup.machines.all()))?;
    }
    case.warnings.extend(setup.inventory.unequal());
    print(&case.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect::<String>())?;
    setup.require_stable(&case).map_err(|error| (INPUT, error.to_string()))?;
    match memory::available() {
        Some(there) => memory::compare(&need, nodes, 1, &there).map_err(|error| (INPUT, error.to_string())),
        None => Ok(()),
    }
}

fn digest(path: &Path) -> Result<(), Failure> {
    let file = if path.is_dir() { path.join("final.h5") } else { path.to_path_buf() };
    print(&output::digest(&file).map_err(|error| (INPUT, error.to_string()))?)
}

fn info(arguments: &inspect::info::InfoArguments) -> Result<(), Failure> {
    let (text, whole) = inspect::info::info(arguments).map_err(|error| (FILES, error.to_string()))?;
    print(text.trim_end())?;
    if whole { Ok(()) } else { Err((FILES, "not all files are whole".into())) }
}

fn export(arguments: &inspect::export::ExportArguments) -> Result<(), Failure> {
    let done = inspect::export::export(arguments).map_err(|error| (FILES, error.to_string()))?;
    done.notes.iter().for_each(|note| complain_softly(note));
    let files: Vec<String> = done.files.iter().map(|path| path.display().to_string()).collect();
    print(&files.join("\n"))
}

fn story(arguments: &ReportArguments) -> Result<(), Failure> {
    let page = breccia::commands::report::report(arguments).map_err(|error| (FILES, error.to_string()))?;
    print(&page.display().to_string())
}

/// `breccia run`, on all ranks. A rank that fails alone, by a panic, ends the others with it.
fn parallel(arguments: &RunArguments, begun: Instant) -> ExitCode {
    let variable = |name: &str| std::env::var(name).ok();
    if let Some(message) = run::unlinked(variable) {
        return refuse_launch(&message);
    }
    let Some(world) = World::initialize() else {
        complain("MPI cannot be started, or does not allow threads");
        return ExitCode::from(INPUT);
    };
    if world.size() == 1
        && let Some(message) = run::lonely(variable)
    {
        return refuse_launch(&message);
    }
    let rank = world.rank();
    RANK.store(rank, Ordering::Relaxed);
    watch::abort_on_panic(PANIC, world.size());
    let limit = (!arguments.stall_limit.is_zero()).then_some(arguments.stall_limit);
    // After the start of MPI, which has a handler of its own for SIGABRT: this one comes before it.
    if let Err(error) = listen_to_starvation().and_then(|()| watch::set_limit(limit)) {
        complain(&format!("the watch over this rank cannot be started: {error}"));
        world.abort(FILES.into());
    }
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(arguments, begun, &Metered::new(&world))
    }));
    match outcome {
        Ok(Ok(ending)) => ExitCode::from(ending.exit_code()),
        Ok(Err(error)) => {
            // All ranks have agreed to end: one complaint is enough.
            if rank == 0 {
                complain(&error.to_string());
            }
            ExitCode::from(error.exit_code())
        }
        Err(_) => world.abort(PANIC),
    }
}

/// All processes find the same; one complaint is enough.
fn refuse_launch(message: &str) -> ExitCode {
    if launched_rank().is_none_or(|rank| rank == "0") {
        complain(message);
    }
    ExitCode::from(INPUT)
}

fn run(arguments: &RunArguments, begun: Instant, comm: &dyn Comm) -> Result<Ending, RunError> {
    let threads =
        arguments.threads.map_or_else(|| default_threads(comm.size()), |threads| threads.get().into());
    // This thread is one of them: a parallel loop then begins here at once, without waking another.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
    held_back(|| pool.build_global())
        .map_err(|error| RunError::Options(format!("--threads {threads}: {error}")))?;
    choose_instructions(arguments, comm)?;
    let mut log = Log::new(comm.rank(), comm.size());
    let opening = format!(
        "breccia {}, {} x {}, {}{}",
        env!("CARGO_PKG_VERSION"),
        counted(comm.size(), "rank"),
        counted(threads, "thread"),
        Instructions::chosen(),
        how_to_stop(comm.size())
    );
    let options = run::Options {
        directory: arguments.out.clone().unwrap_or_else(|| run::default_directory(&arguments.case)),
        steps: arguments.steps,
        until: arguments.until,
        summary: arguments.summary.clone(),
        overwrite: arguments.overwrite,
        restart: arguments.restart.clone(),
        changed_case: arguments.changed_case,
        case_text: String::new(),
        dump_problems: arguments.dump_problem.clone(),
        threads,
        verify: arguments.verify,
        force: arguments.force,
        begun,
        ends_by: arguments.max_time.and_then(|time| begun.checked_add(time)),
    };
    let job = Job {
        case: arguments.case.clone(),
        set: arguments.set.clone(),
        prepare: arguments.prepare,
        opening: Some(opening),
        options,
    };
    run::run_case(&job, comm, &mut log)
}

/// Open MPI's launcher takes Ctrl-C for itself and kills the ranks two seconds later, unless it was given
/// more time.
fn how_to_stop(ranks: usize) -> String {
    let set = |name: &str| std::env::var_os(name).is_some();
    if ranks == 1 || !set("OMPI_COMM_WORLD_SIZE") || set("OMPI_MCA_odls_base_sigkill_timeout") {
        return String::new();
    }
    let process = std::process::id();
    format!(
        "\nto end it early with a checkpoint: kill -USR1 {process}; after Ctrl-C mpirun leaves two seconds \
         (docs/running.md)"
    )
}

/// Collective: the processors of some ranks may have less than those of others.
fn choose_instructions(arguments: &RunArguments, comm: &dyn Comm) -> Result<(), RunError> {
    let Some(set) = arguments.instructions else { return Ok(()) };
    let mut lacking = [i64::from(!set.choose())];
    comm.sum_i64(&mut lacking);
    if lacking == [0] {
        return Ok(());
    }
    let best = Instructions::best();
    Err(RunError::Options(format!(
        "--instructions {set}: not every processor here has them; that of rank 0 has {best} at best"
    )))
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// What the launcher or the user has set aside for this rank; otherwise the whole machine for one rank, one
/// core for each of several.
fn default_threads(ranks: usize) -> usize {
    let set = ["OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.trim().parse().ok().filter(|threads| *threads > 0));
    let alone = || std::thread::available_parallelism().map_or(1, usize::from);
    set.unwrap_or_else(|| if ranks > 1 { 1 } else { alone() })
}
