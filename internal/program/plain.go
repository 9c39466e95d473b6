package program

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/internal/child"
)

// withoutShell returns a command that runs without the shell, if the shell would only start a
// single program in its place. That saves a process. In case of doubt the shell is kept.
func withoutShell(cmd child.Command, line string) child.Command {
	words := plainWords(line)
	if len(words) == 0 {
		return cmd
	}
	path := onPath(words[0], cmd.Dir, lastVariable(cmd.Env, "PATH"))
	if path == "" {
		return cmd
	}
	cmd.Path, cmd.Argv = path, words
	cmd.Env = child.Laid(cmd.Env, map[string]string{"PWD": cmd.Dir}) // a shell sets it as well
	return cmd
}

// plainWords returns the words of a line that has no special meaning to a shell. It returns nil if
// any character or the first word has such a meaning.
func plainWords(line string) []string {
	if strings.IndexFunc(line, func(r rune) bool { return !isPlainRune(r) }) >= 0 {
		return nil
	}
	words := strings.Fields(line)
	if len(words) == 0 || strings.ContainsRune(words[0], '=') || strings.ContainsAny(words[0][:1],
		"-+") || slices.Contains(shellWords, words[0]) {
		return nil
	}
	return words
}

func isPlainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" \t_-./,:@%+=", r)
}

// shellWords are the builtins and keywords of shells.
var shellWords = strings.Fields(
	`. : alias autoload bg bind break builtin caller case cd chdir command compgen complete compopt continue coproc declare dirs
	disown do done echo elif else enable esac eval exec exit export false fc fg fi float for function functions getopts hash help hist history if in integer
	jobs kill let local logout mapfile nameref namespace newgrp nocorrect noglob popd print printf pushd pwd read readarray readonly repeat return
	select set shift shopt source stop suspend test then time times trap true type typeset ulimit umask unalias unset until wait whence which while`)

// onPath returns the program that a shell would start for a name; "" if only a shell can resolve
// the name.
func onPath(name, dir, search string) string {
	if strings.ContainsRune(name, '/') {
		if !isStartable(filepath.Join(dir, name)) && !(filepath.IsAbs(name) && isStartable(name)) {
			return ""
		}
		return name
	}
	for _, folder := range filepath.SplitList(search) {
		if !filepath.IsAbs(folder) {
			return ""
		}
		path := filepath.Join(folder, name)
		if _, err := exec.LookPath(path); err == nil {
			if !isStartable(path) {
				return ""
			}
			return path
		}
	}
	return ""
}

// isStartable reports whether the system can execute a file directly: a Linux program, or a script
// that names its interpreter. A shell would interpret any other file itself.
func isStartable(path string) bool {
	if _, err := exec.LookPath(path); err != nil {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var head [4]byte
	n, _ := io.ReadFull(file, head[:])
	begun := string(head[:n])
	return begun == "\x7fELF" || strings.HasPrefix(begun, "#!")
}

// lastVariable returns the value of a variable in env. The last entry wins.
func lastVariable(env []string, name string) (value string) {
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
