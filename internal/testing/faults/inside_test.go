package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// insideEnv marks a process that runs in a network namespace of its own.
const insideEnv = "TROUPE_FAULTS_INSIDE"

// The main thread never enters hosts, because its network counts as that of this process.
func init() { runtime.LockOSThread() }

func inside() bool { return os.Getenv(insideEnv) != "" }

// goInside runs this program again in a network namespace and returns its exit code. Root needs
// only that; other users also need a user namespace, in which they keep their id and may change the
// network.
func goInside() (code int, err error) {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN}
	}
	if err := permitted(attr); err != nil {
		return 0, err
	}
	cmd := itself(attr, insideEnv+"=yes")
	cmd.Args = os.Args
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// permitted checks whether hosts can be created in there.
func permitted(attr *syscall.SysProcAttr) error {
	if out, err := itself(attr, insideEnv+"=trial").CombinedOutput(); err != nil {
		return fmt.Errorf("%w %s", err, out)
	}
	return nil
}

// trial is the check that runs in that process.
func trial() error {
	ns, err := newNamespaces(1, samePort(1))
	if err != nil {
		return err
	}
	return ns.close()
}

func itself(attr *syscall.SysProcAttr, env ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = attr
	return cmd
}
