package cli

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// repository is the folder of README.md.
const repository = "../.."

// readDocument returns the text of a document, named from the root of the repository.
func readDocument(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	require.NoError(t, err)
	return string(text)
}

// shellBlocks returns the blocks of commands of a document, in order.
func shellBlocks(t *testing.T, path string) []string {
	t.Helper()
	var blocks []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(readDocument(t, path), -1) {
		blocks = append(blocks, block[1])
	}
	require.NotEmpty(t, blocks)
	return blocks
}

// newcomer runs the commands of README in a folder with the repository's examples. Each
// long-running command has a terminal of its own.
type newcomer struct {
	*testing.T
	dir    string
	env    []string
	server string // address of troupe dev
}

func newNewcomer(t *testing.T) *newcomer {
	n := &newcomer{T: t, dir: t.TempDir()}
	root, err := filepath.Abs(repository)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(filepath.Join(root, "examples"), filepath.Join(n.dir, "examples")))
	bin := filepath.Join(n.dir, "bin")
	n.env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GOBIN="+bin, "TROUPE_LISTEN=127.0.0.1:0", "NO_COLOR=1")
	return n
}

// staying matches commands that run until they are stopped.
var staying = regexp.MustCompile(`^troupe (dev|worker --)`)

func (n *newcomer) runBlock(block string) (printed string) {
	n.Helper()
	if staying.MatchString(block) {
		return n.startCommand(block)
	}
	if n.server != "" { // the address in README may be in use on this machine
		block = strings.ReplaceAll(block, "http://127.0.0.1:8070", n.server)
	}
	block = strings.ReplaceAll(block, "/tmp/", n.dir+"/")
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", block)
	cmd.Dir, cmd.Env = n.dir, n.env
	if strings.HasPrefix(block, "go install") {
		cmd.Dir = repository
	}
	out, err := cmd.CombinedOutput()
	require.NoError(n, err, "%s\n%s", block, out)
	return string(out)
}

func (n *newcomer) startCommand(command string) string {
	n.Helper()
	cmd := exec.Command("bash", "-c", "exec "+strings.TrimSpace(command))
	cmd.Dir, cmd.Env = n.dir, n.env
	stdout, err := cmd.StdoutPipe()
	require.NoError(n, err)
	var stderr output
	cmd.Stderr = &stderr
	require.NoError(n, cmd.Start())
	n.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		killed := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // its exit status is tested elsewhere
		killed.Stop()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(n, err, "%s\n%s", command, stderr.String())
	if strings.HasPrefix(line, "Troupe serves") {
		n.server = urlIn(n.T, line)
		n.env = append(n.env, "TROUPE_SERVER="+n.server)
	}
	return line
}

// runBlocks runs all blocks of a document and returns what they print.
func (n *newcomer) runBlocks(path string) string {
	n.Helper()
	var printed []string
	for _, block := range shellBlocks(n.T, path) {
		printed = append(printed, n.runBlock(block))
	}
	return strings.Join(printed, "\n")
}

func TestEveryCommandOfTheReadmeWorks(t *testing.T) {
	n := newNewcomer(t)
	printed := n.runBlocks("README.md")
	require.Contains(t, printed, "tasks ended as expected")
	require.Contains(t, printed, "order.yaml: valid")
	require.Regexp(t, `completed after 2 steps`, printed)
	require.Regexp(t, `"result":\{"tracking":"T-1"\}`, printed)
}

func TestEveryCommandOfTheTutorialWorks(t *testing.T) {
	n := newNewcomer(t)
	require.Contains(t, n.runBlocks("docs/tutorial/1-first-flow.md"), "Result: 24")
	printed := n.runBlocks("docs/tutorial/2-first-worker.md")
	require.Contains(t, printed, `Result: {"tracking":"T-1"}`)
	require.Contains(t, printed, "shipping for")
	printed = n.runBlocks("docs/tutorial/3-failure-and-retry.md")
	require.Contains(t, printed, "attempt 3 of unit 0 failed: the warehouse is closed (exit code 1)")
	require.Regexp(t, `completed after 3 steps`, printed)
	printed = n.runBlocks("docs/tutorial/4-approval.md")
	require.Contains(t, printed, "Ship this order?")
	require.Regexp(t, `completed after 3 steps`, printed)
}

func TestEveryCommandOfTheHTTPReferenceWorks(t *testing.T) {
	n := newNewcomer(t)
	n.startServer()
	require.Contains(t, n.runBlocks("docs/reference/http.md"), "event: end")
}

// startServer installs the program and starts troupe dev.
func (n *newcomer) startServer() {
	n.Helper()
	n.runBlock("go install ./cmd/troupe\n")
	n.runBlock("troupe dev\n")
}

func TestEveryDialectWorksAsItsPageShows(t *testing.T) {
	n := newNewcomer(t)
	n.startServer()
	blocks := shellBlocks(t, "docs/reference/dialects.md")
	require.Len(t, blocks, 3)
	require.Regexp(t, `(?m)task completed$`, n.runBlock(blocks[0]))
	require.Contains(t, n.runBlock(blocks[1]), `"output":{"numbers":[2,4,6],"text":"HELLO"}`)
	printed := n.runBlock(blocks[2])
	require.Regexp(t, `(?m)^clean_up +completed`, printed)
	require.Regexp(t, `(?m)^add_up +completed +1 +3 `, printed)
	require.Contains(t, printed, `"status":"pending"`)
}

func TestTheSameFlowInThreeDialectsGivesTheSame(t *testing.T) {
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(readDocument(t, "docs/explanation/which-flow.md"), -1)
	require.Len(t, blocks, 3)
	url := startServe(t, "--allow-scripts")
	for i, head := range []string{"(graph)", "(dag, profile pgflow", "(dag, profile ork"} {
		path := write(t, "doubled.yaml", blocks[i][1])
		got := call(t, "flow", "run", path, "-p", "n=21", "--server", url)
		require.Regexp(t, `Result: +(42|{"double":42})\n`, got.stdout, got.stderr)
		plan := call(t, "flow", "show", "doubled", "--plan", "--server", url).stdout
		require.Regexp(t, `(?s)^doubled `+regexp.QuoteMeta(head)+`[^\n]*\n  double [^\n]*\n$`, plan)
	}
}

func TestTheReadmeContainsTermsOperatorsSearchFor(t *testing.T) {
	text := readDocument(t, "README.md")
	for _, word := range []string{"Backup", "Upgrade", "systemd", "Docker", "Prometheus", "Kubernetes", "Logs"} {
		require.Regexp(t, `(?i)\b`+word+`\b`, text)
	}
}
