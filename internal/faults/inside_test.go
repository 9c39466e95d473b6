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

// insideEnv tells this program that it has a network of its own, in which it may do anything.
const insideEnv = "TROUPE_FAULTS_INSIDE"

// The main thread stays out of hosts: its network is the one that others know as that of this
// process.
func init() { runtime.LockOSThread() }

func inside() bool { return os.Getenv(insideEnv) != "" }

// goInside runs this program again in a network of its own and says how it ended. Root only needs
// the network; anybody else a namespace of users, too, in which they stay who they are and may
// change that network.
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

// permitted finds out whether hosts can be made in there.
func permitted(attr *syscall.SysProcAttr) error {
	if out, err := itself(attr, insideEnv+"=trial").CombinedOutput(); err != nil {
		return fmt.Errorf("%w %s", err, out)
	}
	return nil
}

// trial is what a process does that is to find that out.
func trial() error {
	ns, err := newNamespaces(1, 1)
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
