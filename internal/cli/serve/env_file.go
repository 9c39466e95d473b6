package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/dialect/ork"
)

// envVariable is a variable of an environment file.
type envVariable struct{ name, value string }

// loadEnvFile passes the variables of an environment file to programs, like variables of the
// member's environment, which have precedence. The folder's ork.yaml names the file for
// development.
func loadEnvFile(cfg *troupe.Config, dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, ork.SettingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	named := ork.EnvFile(text)
	if named == "" {
		return nil
	}
	file := filepath.Join(dir, filepath.FromSlash(named))
	if text, err = os.ReadFile(file); err != nil {
		return fmt.Errorf("env_file of %s: %w", filepath.Join(dir, ork.SettingsFile), err)
	}
	variables, err := readVariables(string(text))
	if err != nil {
		return fmt.Errorf("%s:%w", file, err)
	}
	for _, v := range variables {
		if _, set := os.LookupEnv(v.name); !set {
			if err := os.Setenv(v.name, v.value); err != nil {
				return fmt.Errorf("%s: %s: %w", file, v.name, err)
			}
		}
		if !slices.Contains(cfg.SecretEnv, v.name) {
			cfg.ChildEnv = append(cfg.ChildEnv, v.name)
		}
	}
	return nil
}

// readVariables parses lines NAME=value as in .env files: with or without quotes, optionally after
// export.
func readVariables(text string) (all []envVariable, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, is := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name = strings.TrimSpace(name)
		if !is || name == "" || strings.ContainsAny(name, " \t\"'") {
			return nil, fmt.Errorf("%d: %.80q: write NAME=value", n, line)
		}
		if value, is = unquoteValue(strings.TrimSpace(value)); !is {
			return nil, fmt.Errorf("%d: the value of %s has no closing quote", n, name)
		}
		all = append(all, envVariable{name, value})
	}
	return all, nil
}

// unquoteValue returns a value without quotes and without a comment after it.
func unquoteValue(text string) (value string, whole bool) {
	switch {
	case strings.HasPrefix(text, "'"):
		value, _, whole = strings.Cut(text[1:], "'")
		return value, whole
	case strings.HasPrefix(text, `"`):
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", false
		}
		value, err = strconv.Unquote(quoted)
		return value, err == nil
	}
	value, _, _ = strings.Cut(text, " #")
	return strings.TrimSpace(value), true
}
