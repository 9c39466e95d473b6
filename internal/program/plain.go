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

// withoutShell is a command without the shell, if all that the shell would do with its line is to
// start a program in its own place: then it is one program less to start. Whenever there is doubt
// the shell has it.
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
	cmd.Env = child.Laid(cmd.Env, map[string]string{"PWD": cmd.Dir}) // a shell says so
	return cmd
}

// plainWords of a line that mean themselves; none if anything of it, or its first word, means
// something to a shell.
func plainWords(line string) []string {
	if strings.IndexFunc(line, func(r rune) bool { return !isPlainRune(r) }) >= 0 {
		return nil
	}
	words := strings.Fields(line)
	if len(words) == 0 || strings.ContainsRune(words[0], '=') || strings.ContainsAny(words[0][:1], "-+") || slices.Contains(shellWords, words[0]) {
		return nil
	}
	return words
}

func isPlainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" \t_-./,:@%+=", r)
}

// shellWords are what shells do themselves, or take for grammar, when a command begins with it.
var shellWords = strings.Fields(`. : alias autoload bg bind break builtin caller case cd chdir command compgen complete compopt continue coproc declare dirs
	disown do done echo elif else enable esac eval exec exit export false fc fg fi float for function functions getopts hash help hist history if in integer
	jobs kill let local logout mapfile nameref namespace newgrp nocorrect noglob popd print printf pushd pwd read readarray readonly repeat return
	select set shift shopt source stop suspend test then time times trap true type typeset ulimit umask unalias unset until wait whence which while`)

// onPath is what a shell would start for a name; "" when only the shell knows.
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

// isStartable says that a system starts a file by itself: a program for Linux, or a script that
// says who reads it. Shells read any other one.
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

// lastVariable of an environment; the last one counts.
func lastVariable(env []string, name string) (value string) {
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
