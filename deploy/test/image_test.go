package deploy

import (
	"bufio"
	"debug/elf"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/stretchr/testify/require"
)

// program is the path of the release program as in the image.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	for _, v := range os.Environ() { // settings of the tester
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "TROUPE_") {
			os.Unsetenv(name)
		}
	}
	dir, err := os.MkdirTemp("", "troupe-deploy-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	build := exec.Command("../../scripts/release.sh", dir)
	build.Env = append(os.Environ(), "CLOUD=no", "PLATFORMS=linux/"+runtime.GOARCH,
		"VERSION=v0.0.0-test", "COMMIT=unknown", "DATE=2026-01-02T03:04:05Z")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("scripts/release.sh: %v\n%s", err, out))
	}
	program = filepath.Join(dir, "troupe_v0.0.0-test_linux_"+runtime.GOARCH)
	return m.Run()
}

// output returns the output of a command.
func output(t *testing.T, command string, args ...string) string {
	t.Helper()
	out, err := exec.Command(command, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		require.NoError(t, err, string(failed.Stderr))
	}
	require.NoError(t, err)
	return string(out)
}

// isKey checks the form of a gossip key.
func isKey(t *testing.T, text []byte) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Len(t, key, 32)
}

func TestVariablesInTheFilesAreTheProgramsOwn(t *testing.T) {
	help := output(t, program, "serve", "--help") + output(t, program, "worker", "run", "--help")
	known := regexp.MustCompile(`\$(TROUPE_[A-Z_]+)`).FindAllString(help, -1)
	files := []string{"../Dockerfile", "../compose/compose.yaml", "../kubernetes/troupe.yaml", "../helm/troupe/templates/statefulset.yaml",
		"../systemd/troupe.service", "../systemd/troupe.env", "../systemd/cluster.conf"}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`TROUPE_[A-Z_]+`).FindAllString(string(text), -1) {
			require.Contains(t, known, "$"+name, file)
		}
	}
}

// dockerfile returns the stages of the image.
func dockerfile(t *testing.T) []instructions.Stage {
	t.Helper()
	file, err := os.Open("../Dockerfile")
	require.NoError(t, err)
	defer file.Close()
	parsed, err := parser.Parse(file)
	require.NoError(t, err)
	require.Empty(t, parsed.Warnings)
	stages, _, err := instructions.Parse(parsed.AST, nil)
	require.NoError(t, err)
	return stages
}

// command returns the only command of a kind in a stage.
func command[T any](t *testing.T, stage instructions.Stage) T {
	t.Helper()
	i := slices.IndexFunc(stage.Commands, func(c instructions.Command) bool { _, ok := c.(T); return ok })
	require.GreaterOrEqual(t, i, 0, "%T is missing", *new(T))
	return stage.Commands[i].(T)
}

func TestTheImageIsBuiltWithTheGoOfTheModule(t *testing.T) {
	module, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	require.Equal(t, "golang:"+string(version[1]), dockerfile(t)[0].BaseName)
}

func TestTheImageHoldsTheProgramAloneAndIsNotRoot(t *testing.T) {
	stages := dockerfile(t)
	image := stages[len(stages)-1]
	require.Equal(t, "scratch", image.BaseName)
	require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, command[*instructions.UserCommand](t, image).User,
		"a number, because there is no list of users")
	require.Equal(t, []string{"/troupe"}, []string(command[*instructions.EntrypointCommand](t, image).CmdLine))
	require.Equal(t, []string{"serve"}, []string(command[*instructions.CmdCommand](t, image).CmdLine))
	require.Equal(t, []string{"CMD", "/troupe", "health"}, command[*instructions.HealthCheckCommand](t, image).Health.Test)
	require.Equal(t, "SIGTERM", command[*instructions.StopSignalCommand](t, image).Signal)
}

func TestTheProgramIsStatic(t *testing.T) {
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer file.Close()
	require.False(t, slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }))
	libraries, err := file.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries)
}

// container runs the program as the image does: as its user, and, if possible, in a root folder
// with nothing else.
func container(t *testing.T, root string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		cmd := exec.Command(filepath.Join(root, "troupe"), args...)
		cmd.Dir, cmd.Env = filepath.Join(root, "data"), env
		return cmd
	}
	cmd := exec.Command("/troupe", args...)
	cmd.Dir, cmd.Env = "/data", env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	return cmd
}

// fill creates the root folder of the image.
func fill(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	data := filepath.Join(root, "data")
	require.NoError(t, os.Mkdir(data, 0o700))
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "troupe"), text, 0o755))
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(data, 65532, 65532))
	}
	return root
}

func TestTheProgramServesAndChecksItsHealthInAnEmptyImage(t *testing.T) {
	root := fill(t)
	member := container(t, root, []string{"TROUPE_LISTEN=127.0.0.1:0", "TROUPE_TOKEN=secret"}, "serve")
	out, err := member.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, member.Start())
	t.Cleanup(func() { _ = member.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url := regexp.MustCompile(`http://\S+`).FindString(line)

	healthy, err := container(t, root, []string{"TROUPE_SERVER=" + url}, "health").CombinedOutput()
	require.NoError(t, err, string(healthy))
	resp, err := http.Get(url + "/v1/tasks")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)

	require.NoError(t, member.Process.Signal(syscall.SIGTERM))
	require.NoError(t, member.Wait(), "it ends as asked, and well")
	gone, err := container(t, root, []string{"TROUPE_SERVER=" + url}, "health").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(gone), "no server answers")
}
