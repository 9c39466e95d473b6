package program_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

// BenchmarkProcess runs programs that do nothing, as many concurrently as there are processors, and
// compares them with a loop that only starts them.
func BenchmarkProcess(b *testing.B) {
	loop := func(b *testing.B, once func() error) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if err := once(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.Run("bare", func(b *testing.B) { loop(b, func() error { return exec.Command("sleep", "0").Run() }) })
	for name, p := range map[string]flow.Program{"line": {Command: "sleep 0"},
		"shell": {Command: "sleep 0;"}, "list": {Args: []string{"sleep", "0"}}} {
		b.Run(name, func(b *testing.B) {
			r := program.New(program.Options{Dir: b.TempDir()})
			defer r.Close()
			job := program.Job{Type: flow.ExecProcess, Input: []byte(`{"n":1}`), Program: &p}
			loop(b, func() error {
				if res := r.Run(b.Context(), job); res.Error != "" {
					return errors.New(res.Error)
				}
				return nil
			})
		})
	}
}

// BenchmarkPython runs Python functions, as many concurrently as there are processors.
func BenchmarkPython(b *testing.B) {
	for name, warm := range map[string]int{"cold": 0, "warm": 2} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			write(b, filepath.Join(dir, "f.py"), "def main(n): return n", 0o644)
			r := program.New(program.Options{Dir: dir})
			defer r.Close()
			job := program.Job{Type: flow.ExecPython, Input: []byte(`{"n":1}`), Program: &flow.Program{File: "f.py", Warm: warm}}
			require.Empty(b, r.Run(b.Context(), job).Error)
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if res := r.Run(b.Context(), job); res.Error != "" {
						b.Error(res.Error)
					}
				}
			})
		})
	}
}
