package flows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/internal/cases"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// Folder publishes the definitions in a folder, and again when they change.
type Folder struct {
	Dir     string
	Out     io.Writer
	Publish func(ctx context.Context, slug string, definition []byte) (*wire.PublishResult, error)
	StrictFlag

	published map[string]fileStamp
	// files that were rejected, perhaps because they embed flows that are not published yet
	refused map[string]bool

	labels map[string]flowLabel // labels of the files, by file name
	// files that are not published because their labels collide with others
	clashing map[string]bool
}

// PublishTo returns a function that publishes definitions on a server.
func (f StrictFlag) PublishTo(server *client.Client) func(context.Context, string, []byte) (*wire.PublishResult, error) {
	return func(ctx context.Context, slug string, definition []byte) (*wire.PublishResult, error) {
		return server.Publish(ctx, slug, definition, f.checkOptions()...)
	}
}

// fileStamp identifies one state of a file.
type fileStamp struct {
	at   time.Time
	size int64
}

// pollInterval is the interval at which a folder is read: short enough to follow an editor.
const pollInterval = 500 * time.Millisecond

// WatchChanges publishes changes until ctx ends.
func (f *Folder) WatchChanges(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		f.PublishChanges(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// PublishChanges publishes changed files. A folder that does not exist (yet) counts as empty.
func (f *Folder) PublishChanges(ctx context.Context) {
	now := map[string]fileStamp{}
	entries, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(f.Out, "reading %s: %v\n", f.Dir, err)
	}
	var changed []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !isDefinition(e.Name()) {
			continue
		}
		now[e.Name()] = fileStamp{info.ModTime(), info.Size()}
		if now[e.Name()] != f.published[e.Name()] {
			changed = append(changed, e.Name())
		}
	}
	maps.DeleteFunc(f.refused, func(name string, _ bool) bool { return now[name] == fileStamp{} })
	f.published = now
	f.publishAll(ctx, f.withoutClashes(changed))
}

// withoutClashes returns the publishable files: changed files whose labels do not collide, and
// files whose labels no longer collide. It prints new problems.
func (f *Folder) withoutClashes(changed []string) (fit []string) {
	f.readLabels(changed)
	problems, clashing := compareLabels(slices.Collect(maps.Values(f.labels))), map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(f.labels)) {
		path := filepath.Join(f.Dir, name)
		found, isChanged := problems.problemsOf(path, f.Strict), slices.Contains(changed, name)
		clashing[name] = found.Err() != nil
		if isChanged || clashing[name] && !f.clashing[name] {
			printProblems(f.Out, path, toWire(found))
		}
		if clashing[name] {
			delete(f.refused, name)
		} else if f.clashing[name] && !isChanged {
			fit = append(fit, name)
		}
	}
	f.clashing = clashing
	for _, name := range changed {
		if !clashing[name] {
			fit = append(fit, name)
		}
	}
	return fit
}

// readLabels reads the labels of changed files, and drops the labels of missing files.
func (f *Folder) readLabels(changed []string) {
	if f.labels == nil {
		f.labels = map[string]flowLabel{}
	}
	maps.DeleteFunc(f.labels, func(name string, _ flowLabel) bool { return f.published[name] == fileStamp{} })
	for _, name := range changed {
		path := filepath.Join(f.Dir, name)
		text, err := os.ReadFile(path)
		label, ok := labelOf(path, text)
		if delete(f.labels, name); err == nil && ok {
			f.labels[name] = label
		}
	}
}

// publishAll publishes new or changed files. Rejected files are retried after each published file,
// because they may depend on it. Problems of the new files are reported at the end.
func (f *Folder) publishAll(ctx context.Context, changed []string) {
	if f.refused == nil {
		f.refused = map[string]bool{}
	}
	wrong := map[string]string{}
	for next := changed; len(next) > 0 && ctx.Err() == nil; {
		progress := false
		for _, name := range next {
			told, ok := f.publishFile(ctx, filepath.Join(f.Dir, name))
			progress = progress || ok
			if ok {
				io.WriteString(f.Out, told)
				delete(f.refused, name)
				continue
			}
			f.refused[name], wrong[name] = true, told
		}
		if next = nil; progress {
			next = slices.Sorted(maps.Keys(f.refused))
		}
	}
	for _, name := range changed {
		if f.refused[name] {
			io.WriteString(f.Out, wrong[name])
		}
	}
}

// publishFile publishes a file. It returns a report of the result.
func (f *Folder) publishFile(ctx context.Context, path string) (told string, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error() + "\n", false
	}
	if ork.IsBeside(filepath.Base(path), text) {
		return "", true
	}
	r, err := rootFlag{}.translateOrk(path, text)
	var b strings.Builder
	if refusal := f.refusalOf(r.problems); err == nil && refusal != nil {
		r.text, r.problems = nil, refusal
	}
	if err == nil && r.text == nil {
		printProblems(&b, path, r.problems)
		return b.String(), false
	}
	var published *wire.PublishResult
	if err == nil {
		published, err = f.Publish(ctx, r.flowSlug(path), r.text)
	}
	switch problems := problemsOf(err); {
	case err == nil:
		printProblems(&b, path, r.allProblems(published.Warnings))
		fmt.Fprintf(&b, "%s: %s%s\n", path, describePublished(published), r.originNote())
	case problems != nil:
		printProblems(&b, path, r.allProblems(problems))
	default:
		fmt.Fprintf(&b, "%s: %s\n", path, console.ExplainError(err))
	}
	return b.String(), err == nil
}

// formatProblem formats a problem like compilers do, so that editors find the place.
func formatProblem(file string, line, column int, severity, path, msg string) string {
	if line > 0 {
		file = fmt.Sprintf("%s:%d:%d", file, line, column)
	}
	if path != "" {
		msg = path + ": " + msg
	}
	return console.SanitizeText(fmt.Sprintf("%s: %s: %s", file, severity, msg))
}

// isDefinition reports whether a file contains a flow, by its name. Test files beside a flow
// contain none.
func isDefinition(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(name, ".") && !cases.IsCases(name)
	}
	return false
}

// SlugOf derives a slug from a file name.
func SlugOf(path string) string {
	name := filepath.Base(path)
	name = strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name)))
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789._-", r) {
			return r
		}
		return '-'
	}, name)
}
