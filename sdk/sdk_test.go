package sdk

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/internal/built"
	"github.com/troupe-engine/troupe/internal/pgtest"
)

// binary is the built command.
var binary string

func TestMain(m *testing.M) { os.Exit(build(m)) }

// build makes the command that the SDKs are tested against, then runs the tests.
func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "troupe-sdk-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "troupe")
	if err := built.Program(binary, "../cmd/troupe"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return pgtest.Main(m)
}

func TestPython(t *testing.T) {
	t.Parallel() // it waits for most of its time
	need(t, "python3", 3, 9)
	run(t, "python", "python3", "-W", "error::ResourceWarning", "-m", "unittest")
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	need(t, "node", 20, 11)
	need(t, "npm", 8, 0)
	install(t)
	run(t, "typescript", "npm", "test")
	packs(t)
}

// packs makes the package that npm would publish, and uses it as somebody does who has installed
// it.
func packs(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	pack := exec.Command("npm", "pack", "--pack-destination", dir)
	pack.Dir = "typescript"
	out, err := pack.CombinedOutput()
	require.NoError(t, err, "%s", out)
	tarballs, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	require.NoError(t, err)
	require.Len(t, tarballs, 1)
	out, err = exec.Command("tar", "-xzf", tarballs[0], "-C", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, file := range []string{"LICENSE", "README.md", "dist/index.d.ts"} {
		require.FileExists(t, filepath.Join(dir, "package", file))
	}
	modules, err := filepath.Abs("typescript/node_modules") // what it needs
	require.NoError(t, err)
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "package", "node_modules")))
	use := exec.Command("node", "--input-type=module", "-e", `import { Client, Worker } from "@troupe-engine/sdk"; console.log(typeof Client, typeof Worker)`)
	use.Dir = filepath.Join(dir, "package")
	out, err = use.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "function function\n", string(out))
}

// need fails a test on a machine that lacks a program, and says what to install.
func need(t *testing.T, program string, major, minor int) {
	t.Helper()
	wanted := fmt.Sprintf("the SDKs are tested with %s %d.%d or newer: install it (python3 of python.org or your system, node with npm of nodejs.org)", program, major, minor)
	out, err := exec.Command(program, "--version").Output()
	require.NoError(t, err, "%s", wanted)
	found := regexp.MustCompile(`(\d+)\.(\d+)`).FindStringSubmatch(string(out))
	require.NotNil(t, found, "%s says %q; %s", program, out, wanted)
	version := make([]int, 2)
	for i := range version {
		version[i], err = strconv.Atoi(found[i+1])
		require.NoError(t, err)
	}
	require.False(t, version[0] < major || version[0] == major && version[1] < minor, "here is %s %s; %s", program, found[0], wanted)
}

// install has the compiler there, in the version of the lock file. What is there already stays.
func install(t *testing.T) {
	t.Helper()
	locked, err := os.ReadFile("typescript/package-lock.json")
	require.NoError(t, err)
	const stamp = "typescript/node_modules/.installed" // what was installed, wholly
	if installed, err := os.ReadFile(stamp); err == nil && bytes.Equal(installed, locked) {
		return
	}
	cmd := exec.Command("npm", "ci")
	cmd.Dir = "typescript"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "npm ci in sdk/typescript, which needs the npm registry once:\n%s", out)
	require.NoError(t, os.WriteFile(stamp, locked, 0o644))
}

// run runs the tests of an SDK in its folder.
func run(t *testing.T, folder, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = folder
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TROUPE_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "TROUPE_BINARY="+binary, "TROUPE_TEST_STORE="+pgtest.DSN(t), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `(?m)^(Ran|ℹ pass) [1-9]`, string(out), "no test was run")
}

// TestTheProtocolOfTypeScriptIsTheMembers compares what was generated for both of attach.proto.
// That of TypeScript is made by npm's @bufbuild/protoc-gen-es with the options target=ts and
// import_extension=js.
func TestTheProtocolOfTypeScriptIsTheMembers(t *testing.T) {
	generated, err := os.ReadFile("typescript/src/attach_pb.ts")
	require.NoError(t, err)
	encoded := regexp.MustCompile(`fileDesc\("([^"]+)"`).FindSubmatch(generated)
	require.NotNil(t, encoded)
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(string(encoded[1]), "="))
	require.NoError(t, err)
	var theirs descriptorpb.FileDescriptorProto
	require.NoError(t, proto.Unmarshal(b, &theirs))
	ours := protodesc.ToFileDescriptorProto(attach.File_api_wire_attach_attach_proto)
	for _, m := range append(ours.MessageType, theirs.MessageType...) {
		for _, f := range m.Field {
			f.JsonName = nil // one of the two generators leaves it out
		}
	}
	require.True(t, proto.Equal(ours, &theirs), "sdk/typescript/src/attach_pb.ts is to be made anew:\n%s\n%s", ours, &theirs)
}
