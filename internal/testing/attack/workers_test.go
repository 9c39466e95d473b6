package attack

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/internal/testing/ports"
	"github.com/troupe-engine/troupe/internal/testing/process"
)

// Attacks on workers.
var onWorkers = []attack{
	{name: "strangers who call a push worker", strike: strangersAtWorker},
}

// strangersAtWorker call a worker that listens beyond this host. It accepts commands only from its
// member, or refuses to listen there.
func strangersAtWorker(a *attacker) {
	dir, err := os.MkdirTemp("", "troupe-attack-worker-")
	if err != nil {
		a.hole("%v", err)
		return
	}
	defer os.RemoveAll(dir)
	address, err := ports.FreeAddress()
	if err != nil {
		a.hole("%v", err)
		return
	}
	id, done := a.name("pushed"), filepath.Join(dir, "done")
	cmd := exec.Command(binary, "worker", "--server", a.base, "--id", id, "--mode", "push", "--exec", id+"=echo x >> "+done,
		"--url", "http://"+address, "--listen", strings.Replace(address, "127.0.0.1", "0.0.0.0", 1))
	if a.token != "" {
		cmd.Env = append(os.Environ(), "TROUPE_TOKEN="+a.token)
	}
	worker, err := process.Start(dir, "worker", cmd)
	if err != nil {
		a.hole("%v", err)
		return
	}
	defer worker.Kill()
	for got := ""; !strings.Contains(got, id); got = string(a.send("GET", "/v1/workers?id_prefix="+id, nil).body) {
		if worker.Gone() || a.ctx.Err() != nil {
			return
		}
		pause(a.ctx, 50*time.Millisecond)
	}
	a.each(a.of(20, 200), 5, func(i int) { a.callWorker("http://"+address+"/exec/"+id, i) })
	if text, err := os.ReadFile(done); err == nil {
		a.hole("a stranger had a worker's command carried out %d times", len(text)/2)
	}
}

// callWorker calls a worker as the member does, without its secret.
func (a *attacker) callWorker(url string, i int) {
	req, err := http.NewRequestWithContext(a.ctx, "POST", url, strings.NewReader(`{"input":1,"params":{}}`))
	if err != nil {
		a.hole("%v", err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", fmt.Sprintf("task-%d", i))
	if i%2 == 0 {
		req.Header.Set("Authorization", fmt.Sprintf("Bearer guess-%d", i))
	}
	if resp, err := a.http.Do(req); err == nil {
		resp.Body.Close()
	}
}
