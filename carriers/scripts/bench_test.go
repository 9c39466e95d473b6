package scripts_test

import (
	"os/exec"
	"testing"

	"github.com/troupe-engine/troupe/carriers/scripts"
	"github.com/troupe-engine/troupe/flow"
)

// BenchmarkBareLoop measures the minimum cost of running a short script; the carrier should be near
// it.
func BenchmarkBareLoop(b *testing.B) {
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if out, err := exec.Command("sh", "-c", "echo 1").CombinedOutput(); err != nil || len(out) != 2 {
				b.Fatal(out, err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "scripts/s")
}

func BenchmarkCarry(b *testing.B) {
	for name, s := range map[string]flow.Script{
		"cmd":   {Cmd: "sh", Args: []string{"-c", "echo 1"}, OutputMode: "json"},
		"stdin": {Cmd: "sh", Args: []string{"-c", "echo 1"}, OutputMode: "json", StdinMode: "json"},
		"code":  {Cmd: "sh", Code: "echo 1", OutputMode: "json"},
	} {
		b.Run(name, func(b *testing.B) {
			c, j := scripts.New(scripts.Options{Allow: true}), job(s)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if rep := c.Carry(b.Context(), j); rep.Error != "" {
						b.Fatal(rep.Error)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "scripts/s")
		})
	}
}
