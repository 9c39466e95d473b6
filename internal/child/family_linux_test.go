package child_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/internal/child"
)

// parentMode makes this program start a family, print its process ids and wait to be killed.
const parentMode = "TEST_CHILD_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentMode); dir != "" {
		cmd := wanderers(dir)
		if _, err := start(cmd); err != nil {
			panic(err)
		}
		fmt.Println(cmd.Process.Pid)
		_ = cmd.Wait()
		return
	}
	goleak.VerifyTestMain(m)
}

func start(cmd *exec.Cmd) (child.Family, error) {
	family := child.New()
	cmd.Env = append(cmd.Env, family.Variable())
	if err := cmd.Start(); err != nil {
		return family, err
	}
	family.Adopt(cmd.Process.Pid)
	return family, nil
}

// wanderers returns a program whose children leave it in every possible way and write their ids to
// a folder.
func wanderers(dir string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", `
		while grep -q 'file locks *unlimited' /proc/$$/limits; do :; done # until it was adopted
		note='echo $$ > $0.new; mv $0.new $0; exec sleep 1000'
		sh -c "$note" $DIR/child &
		setsid sh -c "$note" $DIR/session &
		(setsid env -i sh -c "$note" $DIR/orphan &)
		(sh -c 'setsid sh -c "(sh -c \"\$0\" \$1 &)" "$0" $1' "$note" $DIR/deep &)
		exec sleep 1000`)
	cmd.Env = append(os.Environ(), "DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

var ways = []string{"child", "session", "orphan", "deep"}

const patience = time.Minute

// pids waits until all wanderers are running.
func pids(t *testing.T, dir string) (all []int) {
	for _, name := range ways {
		all = append(all, pidIn(t, filepath.Join(dir, name)))
	}
	return all
}

// pidIn waits until a file holds a process id.
func pidIn(t *testing.T, file string) (pid int) {
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	}, patience, 5*time.Millisecond)
	return pid
}

func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestKillEndsTheWholeFamily(t *testing.T) {
	dir, others := t.TempDir(), t.TempDir()
	doomed, spared := wanderers(dir), wanderers(others)
	family, err := start(doomed)
	require.NoError(t, err)
	other, err := start(spared)
	require.NoError(t, err)
	end, stay := pids(t, dir), pids(t, others)
	family.Kill()
	for i, pid := range end {
		require.False(t, isAlive(pid), ways[i])
	}
	for i, pid := range stay {
		require.True(t, isAlive(pid), ways[i])
	}
	other.Kill()
	for i, pid := range stay {
		require.False(t, isAlive(pid), ways[i])
	}
	require.Error(t, doomed.Wait())
	require.Error(t, spared.Wait())
}

func TestLeaveEndsTheRestOfTheFamilySoon(t *testing.T) {
	dir := t.TempDir()
	cmd := wanderers(dir)
	family, err := start(cmd)
	require.NoError(t, err)
	left := pids(t, dir)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	family.Leave()
	for i, pid := range left {
		require.Eventually(t, func() bool { return !isAlive(pid) }, patience, time.Millisecond, ways[i])
	}
}

func TestAFamilyEndsWithTheProcessThatStartedIt(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "asked to": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), parentMode+"="+dir)
			stdout, err := parent.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, parent.Start())
			line, err := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, err)
			first, err := strconv.Atoi(strings.TrimSpace(line))
			require.NoError(t, err)
			all := append(pids(t, dir), first)
			require.NoError(t, parent.Process.Signal(signal))
			require.Error(t, parent.Wait())
			for _, pid := range all {
				require.Eventually(t, func() bool { return !isAlive(pid) }, patience, time.Millisecond)
			}
		})
	}
}

func TestProcessThatLeftBeforeAdoptionIsEnded(t *testing.T) {
	pidfile := filepath.Join(t.TempDir(), "pid")
	family := child.New()
	cmd := exec.Command("sh", "-c", "(setsid sleep 1000 & echo $! > $PIDFILE) &")
	cmd.Env = append(os.Environ(), "PIDFILE="+pidfile, family.Variable())
	require.NoError(t, cmd.Run())
	pid := pidIn(t, pidfile)
	family.Adopt(cmd.Process.Pid)
	family.Kill()
	// a signal takes a moment
	require.Eventually(t, func() bool { return !isAlive(pid) }, patience, time.Millisecond)
}

func TestZeroFamilyEndsNothing(*testing.T) {
	child.Family{}.Kill()
	child.Family{}.Leave()
}

func TestProcessStartedBeforeItsParentWasMarkedIsEnded(t *testing.T) {
	family := child.New()
	left := exec.Command("sleep", "1000")
	left.Env = append(os.Environ(), family.Variable()) // and it is not adopted
	require.NoError(t, left.Start())
	ended := make(chan error, 1)
	go func() { ended <- left.Wait() }()
	family.Leave()
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "killed")
	case <-time.After(patience):
		_ = left.Process.Kill()
		require.Fail(t, "it goes on")
	}
}
