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

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	return string(text)
}

// shellBlocks returns the command blocks of a section, in order.
func shellBlocks(t *testing.T, section string) []string {
	t.Helper()
	_, text, found := strings.Cut(readme(t), "\n## "+section+"\n")
	require.True(t, found, "README has no section %s", section)
	text, _, _ = strings.Cut(text, "\n## ")
	var blocks []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
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
	n.env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "GOBIN="+bin, "TROUPE_LISTEN=127.0.0.1:0", "NO_COLOR=1")
	return n
}

// staying matches commands that run until they are stopped.
var staying = regexp.MustCompile(`^troupe (dev|worker --)`)

func (n *newcomer) types(block string) (said string) {
	n.Helper()
	if staying.MatchString(block) {
		return n.leavesRunning(block)
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

func (n *newcomer) leavesRunning(command string) string {
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

func TestEveryCommandOfTheQuickStartWorks(t *testing.T) {
	n := newNewcomer(t)
	var said []string
	for _, block := range shellBlocks(t, "Quick start") {
		said = append(said, n.types(block))
	}
	all := strings.Join(said, "\n")
	require.Contains(t, all, "tasks ended as they should")
	require.Contains(t, all, "order.yaml: valid")
	require.Regexp(t, `completed after 2 steps`, all)
	require.Contains(t, all, "T-1")
	for _, block := range shellBlocks(t, "HTTP") {
		said = append(said, n.types(block))
	}
	require.Contains(t, said[len(said)-1], "event: end")
}

func TestEveryDialectWorksAsTheReadmeShows(t *testing.T) {
	n := newNewcomer(t)
	for _, block := range shellBlocks(t, "Quick start") {
		if block == "go install ./cmd/troupe\n" || block == "troupe dev\n" {
			n.types(block)
		}
	}
	blocks := shellBlocks(t, "Three dialects")
	require.Len(t, blocks, 3)
	require.Regexp(t, `(?m)task completed$`, n.types(blocks[0]))
	require.Contains(t, n.types(blocks[1]), `"output":{"numbers":[2,4,6],"text":"HELLO"}`)
	said := n.types(blocks[2])
	require.Regexp(t, `(?m)^clean_up +completed`, said)
	require.Regexp(t, `(?m)^add_up +completed +1 +3 `, said)
	require.Contains(t, said, `"status":"pending"`)
}

func TestTheSameFlowInThreeDialectsGivesTheSame(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "ARCHITECTURE.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
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

func TestTheDocumentationContainsTermsOperatorsSearchFor(t *testing.T) {
	text := readme(t)
	for _, page := range []string{"docs/how-to/operate.md", "deploy/README.md"} {
		b, err := os.ReadFile(filepath.Join(repository, page))
		require.NoError(t, err)
		require.Contains(t, text, "("+page+")", "README leads to it")
		text += string(b)
	}
	top := readme(t)
	for _, word := range []string{"Backup", "Upgrade", "systemd", "Docker", "Prometheus", "Kubernetes", "Logs"} {
		require.Regexp(t, `(?i)\b`+word+`\b`, top, "README itself")
		require.Regexp(t, `(?i)\b`+word+`\b`, text)
	}
}
