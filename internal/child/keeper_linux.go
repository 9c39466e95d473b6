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

// keeperName is the keeper's argument 0, by which our program knows that it is meant to be one.
const keeperName = "troupe-keeper"

// A program that was started as a keeper never comes to its main function.
func init() {
	if len(os.Args) == 2 && os.Args[0] == keeperName {
		runAsKeeper(os.Args[1])
		os.Exit(0)
	}
}

// runAsKeeper waits for the end of who started us, then ends the families that are left.
func runAsKeeper(base string) {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	setMark(os.Getpid(), unix.RLIM_INFINITY) // who ends the family we were started in leaves its keeper to its work
	first, err := strconv.ParseUint(base, 10, 64)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	killAll(sweepThorough, func(mark uint64) bool { return hasSameBase(mark, first) })
}

// startKeeper starts the keeper with the first family. Without one, families outlive us when we are
// killed; all else works.
var startKeeper = sync.OnceFunc(func() {
	var pipe [2]int // the end to write to is a bare number, because a file would be closed when nobody refers to it
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
	return p.Release() // it outlives us
}
