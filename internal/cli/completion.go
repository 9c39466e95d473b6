package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe/internal/cli/console"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help explains how to install the completion script.
func (completionCmd) Help() string {
	return `Load the script in the shell's startup file:

    bash: source <(troupe completion bash)
    zsh:  source <(troupe completion zsh)
    fish: troupe completion fish | source`
}

func (c *completionCmd) Run(a *console.App) error {
	places := completionPoints(newParser(a.Program, newCommandTree(a.Program)).Model)
	switch c.Shell {
	case "bash":
		writeBash(a.Stdout, a.Name, places)
	case "zsh":
		writeZsh(a.Stdout, a.Name, places)
	case "fish":
		writeFish(a.Stdout, a.Name, places)
	}
	return nil
}

// completionPoint is a position on a command line: after the words of path, where these words may
// follow.
type completionPoint struct {
	path     string // "", "flow", "flow apply", …
	commands []completionWord
	flags    []completionWord
	asks     bool // whether completeCmd completes the next word
}

// completionWord is a word that may follow at a position. The values of a flag are completed, too.
type completionWord struct {
	text, help string
	short      string // the other name of a flag, such as -p
	values     []string
	asks       bool // whether completeCmd completes the flag's values
	takesValue bool
}

// completionPoints walks the model of the command line, so completion knows every command and flag
// of the parser.
func completionPoints(app *kong.Application) []completionPoint {
	var all []completionPoint
	var walk func(n *kong.Node, path string)
	walk = func(n *kong.Node, path string) {
		p := completionPoint{path: path}
		for _, child := range n.Children {
			if !child.Hidden {
				p.commands = append(p.commands, completionWord{text: child.Name, help: child.Help})
			}
		}
		for _, positional := range n.Positional {
			for _, value := range nonEmptyValues(positional.EnumSlice()) {
				p.commands = append(p.commands, completionWord{text: value})
			}
		}
		for _, group := range withDefault(n).AllFlags(true) {
			for _, f := range group {
				p.flags = append(p.flags, flagWord(f))
			}
		}
		p.asks = slices.ContainsFunc(n.Positional, func(v *kong.Positional) bool { return v.Tag.Has("complete") })
		all = append(all, p)
		for _, child := range n.Children {
			if child.Hidden {
				continue
			}
			walk(child, strings.TrimSpace(path+" "+child.Name))
		}
	}
	walk(app.Node, "")
	return all
}

// withDefault returns the default command of n, or n if it has none.
func withDefault(n *kong.Node) *kong.Node {
	if n.DefaultCmd != nil {
		return n.DefaultCmd
	}
	return n
}

func flagWord(f *kong.Flag) completionWord {
	w := completionWord{text: "--" + f.Name, help: strings.ReplaceAll(f.Help, "\n", " "),
		values: nonEmptyValues(f.EnumSlice()), asks: f.Tag.Has("complete"), takesValue: !f.IsBool()}
	if f.Short != 0 {
		w.short = "-" + string(f.Short)
	}
	return w
}

// nonEmptyValues returns the values without "", which stands for an omitted flag.
func nonEmptyValues(values []string) []string {
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// flagCompletion is the completion of a flag's value: fixed values, or values from completeCmd.
type flagCompletion struct {
	pattern string // pattern of the shell's case, for the position and the flag
	completionWord
}

// flagCompletions returns the flags whose values are completed. A flag is listed once, unless its
// meaning differs between positions.
func flagCompletions(places []completionPoint) (all []flagCompletion) {
	kinds := map[string][]string{}
	for _, p := range places {
		for _, f := range p.flags {
			if kind := fmt.Sprint(f.asks, f.values); !slices.Contains(kinds[f.text], kind) {
				kinds[f.text] = append(kinds[f.text], kind)
			}
		}
	}
	told := map[string]bool{}
	for _, p := range places {
		for _, f := range p.flags {
			pattern := patternOf(f, `*" `)
			if len(kinds[f.text]) > 1 {
				pattern = patternOf(f, `"`+p.path+" ")
			}
			if (f.asks || len(f.values) > 0) && !told[pattern] {
				told[pattern] = true
				all = append(all, flagCompletion{pattern, f})
			}
		}
	}
	return all
}

// patternOf returns a case pattern for the names of a flag at a position.
func patternOf(f completionWord, place string) string {
	pattern := place + f.text + `"`
	if f.short != "" {
		pattern += "|" + place + f.short + `"`
	}
	return pattern
}

func joinTexts(words ...[]completionWord) string {
	var all []string
	for _, w := range slices.Concat(words...) {
		all = append(all, w.text)
	}
	return strings.Join(all, " ")
}

// joinPaths returns all positions except the first, as a case pattern of the shell.
func joinPaths(places []completionPoint) string {
	var all []string
	for _, p := range places[1:] {
		all = append(all, `"`+p.path+`"`)
	}
	return strings.Join(all, "|")
}

func writeBash(w io.Writer, program string, places []completionPoint) {
	fmt.Fprintf(w, `_troupe() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" at="" next word words="" IFS=$' \t\n'
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="${at:+$at }$word"
    case "$next" in
      %s) at="$next" ;;
    esac
  done
  [[ "$prev" == -p || "$prev" == --param ]] && compopt -o nospace 2>/dev/null
  case "$at $prev" in
`, joinPaths(places))
	for _, f := range flagCompletions(places) {
		words := strings.Join(f.values, " ")
		if f.asks {
			words = "$(_troupe_values)"
		}
		fmt.Fprintf(w, "    %s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", f.pattern, words)
	}
	fmt.Fprintf(w, "  esac\n  case \"$at\" in\n")
	for _, p := range places {
		words := joinTexts(p.commands)
		if p.asks {
			words = "$(_troupe_values)"
		}
		fmt.Fprintf(w, "    %q) if [[ \"$cur\" == -* ]]; then words=\"%s\"; else words=\"%s\"; fi ;;\n", p.path, joinTexts(p.flags), words)
	}
	fmt.Fprint(w, `  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
_troupe_values() {
  "${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1
}
complete -o default -F _troupe `+program+"\n")
}

func writeZsh(w io.Writer, program string, places []completionPoint) {
	fmt.Fprintf(w, `#compdef %s
_troupe() {
  local at="" next word asks=""
  local -a commands flags values
  for word in "${(@)words[2,CURRENT-1]}"; do
    next="${at:+$at }$word"
    case "$next" in
      %s) at="$next" ;;
    esac
  done
  case "$at ${words[CURRENT-1]}" in
`, program, joinPaths(places))
	for _, f := range flagCompletions(places) {
		then := "compadd " + strings.Join(f.values, " ") + "; return"
		if f.asks {
			then = "asks=flag"
		}
		fmt.Fprintf(w, "    %s) %s ;;\n", f.pattern, then)
	}
	fmt.Fprintf(w, "  esac\n  case \"$at\" in\n")
	for _, p := range places {
		asks := ""
		if p.asks {
			asks = "; asks=${asks:-word}"
		}
		fmt.Fprintf(w, "    %q) commands=(%s); flags=(%s)%s ;;\n", p.path, describeWords(p.commands), describeWords(p.flags), asks)
	}
	fmt.Fprint(w, `  esac
  if [[ -n "$asks" && ( "$asks" == flag || "$PREFIX" != -* ) ]]; then
    values=("${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    values=(${values//$'\t'/:})
    if [[ "${words[CURRENT-1]}" == (-p|--param) ]]; then _describe 'input' values -S ''; else _describe 'value' values; fi
  elif [[ "$PREFIX" == -* ]]; then
    _describe 'flag' flags
  elif (( ${#commands} )); then
    _describe 'command' commands
  else
    _files
  fi
}
if [[ "$funcstack[1]" == "_troupe" ]]; then _troupe "$@"; else compdef _troupe `+program+"; fi\n")
}

func describeWords(words []completionWord) string {
	var all []string
	for _, w := range words {
		text := w.text
		if w.help != "" {
			text += ":" + w.help
		}
		all = append(all, shellQuote(text))
	}
	return strings.Join(all, " ")
}

// shellQuote quotes a text as one word of a shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func writeFish(w io.Writer, program string, places []completionPoint) {
	fmt.Fprintf(w, `function __troupe_at
  set -l at
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$at $word")
    contains -- "$next" %s; and set at "$next"
  end
  test "$at" = "$argv[1]"
end
function __troupe_values
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete -- $words[2..-1] 2>/dev/null
end
`, strings.ReplaceAll(joinPaths(places), "|", " "))
	for _, p := range places {
		for _, c := range p.commands {
			fmt.Fprintf(w, "complete -c %s -f -n '__troupe_at %q' -a %s -d %s\n", program, p.path, c.text, shellQuote(c.help))
		}
		if p.asks {
			fmt.Fprintf(w, "complete -c %s -f -n '__troupe_at %q' -a '(__troupe_values)'\n", program, p.path)
		}
		for _, f := range p.flags {
			value := ""
			switch {
			case f.asks:
				value = " -x -a '(__troupe_values)'"
			case len(f.values) > 0:
				value = " -x -a '" + strings.Join(f.values, " ") + "'"
			case f.takesValue:
				value = " -r"
			}
			short := ""
			if f.short != "" {
				short = " -s " + strings.TrimPrefix(f.short, "-")
			}
			fmt.Fprintf(w, "complete -c %s -n '__troupe_at %q' -l %s%s%s -d %s\n", program, p.path,
				strings.TrimPrefix(f.text, "--"), short, value, shellQuote(f.help))
		}
	}
}
