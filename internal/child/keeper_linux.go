package child

import (
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// keeperName is argument 0 of the keeper. A process with this name runs as the keeper.
const keeperName = "troupe-keeper"

// init runs the keeper, so that a program started as a keeper never reaches its main function.
func init() {
	if len(os.Args) == 2 && os.Args[0] == keeperName {
		runAsKeeper(os.Args[1])
		os.Exit(0)
	}
}

// runAsKeeper waits for the end of the parent, then ends the remaining families.
func runAsKeeper(base string) {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	// do not end this keeper together with the family in which it was started
	setMark(os.Getpid(), unix.RLIM_INFINITY)
	first, err := strconv.ParseUint(base, 10, 64)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	killAll(sweepThorough, func(mark uint64) bool { return hasSameBase(mark, first) })
}

// startKeeper starts the keeper together with the first family. Without a keeper, families outlive
// a killed process; everything else works.
var startKeeper = sync.OnceFunc(func() {
	// the write end is a plain descriptor, because the garbage collector would close an os.File
	var pipe [2]int
	if unix.Pipe2(pipe[:], unix.O_CLOEXEC) != nil {
		return
	}
	if runKeeper(os.NewFile(uintptr(pipe[0]), "lifeline")) != nil {
		_ = unix.Close(pipe[1])
	}
})

func runKeeper(stdin *os.File) error {
	defer stdin.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{keeperName, strconv.FormatUint(families.base, 10)}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1"}, Files: []*os.File{stdin, null, null}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return err
	}
	return p.Release() // the keeper outlives this process
}
