package program_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

// BenchmarkPython has functions of Python carried out, as many at once as there are processors.
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
