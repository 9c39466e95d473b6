package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-engine/troupe/internal/testing/built"
	"github.com/troupe-engine/troupe/internal/testing/errands"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// binary is the built command.
var binary string

// binaryEnv passes the path of the binary to the inner process.
const binaryEnv = "TROUPE_FAULTS_BINARY"

// hostsEnv is set to relays to use relays although namespaces are permitted.
const hostsEnv = "TROUPE_FAULTS_HOSTS"

func TestMain(m *testing.M) {
	errands.BeWorker()
	if text := os.Getenv(proberEnv); text != "" {
		end(1, probe(text))
	}
	switch os.Getenv(insideEnv) {
	case "trial":
		end(0, trial())
	case "yes":
		binary = os.Getenv(binaryEnv)
		if err := ip("link set lo up\n"); err != nil {
			end(1, err)
		}
		os.Exit(test(m))
	}
	code, err := errands.WithContainers(func() int { return outside(m) })
	end(code, err)
}

// test runs the tests and prints all measurements at the end.
func test(m *testing.M) int {
	code := pgtest.Main(m)
	for _, line := range figures {
		fmt.Println(line)
	}
	return code
}

// end ends the process, with 1 after an error.
func end(code int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// outside builds the command and runs the tests in a network namespace, or here if that is not
// permitted.
func outside(m *testing.M) int {
	dir, err := os.MkdirTemp("", "troupe-faults-bin-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = build(filepath.Join(dir, "troupe"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv(hostsEnv) != "relays" {
		code, err := goInside()
		if err == nil {
			return code
		}
		fmt.Fprintf(os.Stderr, "No network namespaces here (%v): relays on loopback make the cuts.\n", err)
	}
	return test(m)
}

func build(path string) error {
	if err := built.Program(path, "../../../cmd/troupe"); err != nil {
		return err
	}
	binary = path
	return os.Setenv(binaryEnv, path)
}
