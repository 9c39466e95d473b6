//go:build linux || darwin

// Command troupe-library calls a function of a shared library, on hosts without Python. Members and
// workers find the program beside their own program, or on the search path. It is separate because
// a program that loads libraries must be linked dynamically, and troupe is not.
//
// The environment holds the library's path in ORK_LIBRARY and the input in ORK_INPUT_FILE or
// ORK_INPUT_JSON. The result is printed as ORK_OUTPUT or ORK_ERROR, like run_library.py of
// internal/program.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

const mark = "ORK_OUTPUT:"

// orkFailure is an error in the wording of Ork.
type orkFailure string

func (w orkFailure) Error() string { return string(w) }

const nullPointer = orkFailure("Task returned null pointer")

func main() {
	runtime.LockOSThread()
	said, err := redirectOutput()
	if err != nil {
		fmt.Fprintln(os.Stderr, "troupe-library:", err)
		os.Exit(1)
	}
	line, code := runCall(os.Getenv("ORK_LIBRARY"))
	if _, err := said.WriteString(line + "\n"); err != nil {
		code = 1
	}
	os.Exit(code)
}

// redirectOutput returns the file for the result and redirects standard output to standard error,
// so that output of the library is not taken for the result.
func redirectOutput() (*os.File, error) {
	fmt.Println("Loading library: " + os.Getenv("ORK_LIBRARY"))
	copied, err := unix.Dup(1)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(copied), "result"), unix.Dup2(2, 1)
}

// runCall returns the output line of a call, and the exit code.
func runCall(path string) (line string, code int) {
	told, err := callLibrary(path)
	var output string
	if err == nil {
		output, err = outputOf(told)
	}
	if err != nil {
		// encoding strings cannot fail
		text, _ := json.Marshal(map[string]string{"message": err.Error()})
		return "ORK_ERROR:" + string(text), 1
	}
	return mark + output, 0
}

func readInput() ([]byte, error) {
	if path := os.Getenv("ORK_INPUT_FILE"); path != "" {
		return os.ReadFile(path)
	}
	if text := os.Getenv("ORK_INPUT_JSON"); text != "" {
		return []byte(text), nil
	}
	return []byte("null"), nil
}

// callLibrary loads a library and calls its function with the input.
func callLibrary(path string) ([]byte, error) {
	in, err := readInput()
	if err != nil {
		return nil, err
	}
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	run, err := purego.Dlsym(library, "ork_task_run")
	if err != nil {
		return nil, err
	}
	free, err := purego.Dlsym(library, "ork_task_free")
	if err != nil {
		return nil, err
	}
	crashAsOthers()
	in = append(in, 0)
	told, _, _ := purego.SyscallN(run, uintptr(unsafe.Pointer(&in[0])))
	runtime.KeepAlive(in)
	if told == 0 {
		return nil, nullPointer
	}
	defer purego.SyscallN(free, told)
	return copyCString(told), nil
}

// copyCString copies a C string.
func copyCString(at uintptr) []byte {
	start := *(*unsafe.Pointer)(unsafe.Pointer(&at)) // C memory, unknown to the garbage collector
	n := 0
	for *(*byte)(unsafe.Add(start, n)) != 0 {
		n++
	}
	return bytes.Clone(unsafe.Slice((*byte)(start), n))
}

// crashAsOthers restores the default signal actions. So a crash in the library ends this program by
// the signal, as for any other program. The Go runtime would print all goroutines and exit with 2.
func crashAsOthers() {
	set, err := purego.Dlsym(purego.RTLD_DEFAULT, "signal")
	if err != nil {
		return
	}
	for _, s := range []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGABRT} {
		purego.SyscallN(set, uintptr(s), 0)
	}
}

// outputOf returns a library's JSON result as one line. An unmarked object with only an error means
// a failure.
func outputOf(told []byte) (string, error) {
	said := strings.TrimSpace(strings.ToValidUTF8(string(told), "\uFFFD"))
	output, marked := strings.CutPrefix(said, mark)
	output = strings.TrimSpace(output)
	if !json.Valid([]byte(output)) {
		return "", fmt.Errorf("the library returned what is no JSON: %s", cutText(output, 200))
	}
	var fields map[string]json.RawMessage
	if !marked && json.Unmarshal([]byte(output), &fields) == nil && len(fields) == 1 && fields["error"] != nil {
		var failure string
		if json.Unmarshal(fields["error"], &failure) != nil {
			failure = string(fields["error"])
		}
		return "", errors.New(failure)
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(output), nil
}

func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
