package v1

import (
	"encoding/json"
	"sync"

	"github.com/troupe-engine/troupe/flow/hook"
	"github.com/troupe-engine/troupe/persistence"
)

// mostCompiled is how many hooks are kept compiled.
const mostCompiled = 200

// compiledHooks are hooks as they were compiled last: compiling one takes longer than all else that a delivery takes of a processor.
type compiledHooks struct {
	mu    sync.Mutex
	known map[string]compiledHook
}

type compiledHook struct {
	settings string
	hook     *hook.Hook
}

// of compiles a hook unless its settings are those that were compiled last.
func (c *compiledHooks) of(h *persistence.Hook) (*hook.Hook, error) {
	settings := string(h.Settings)
	if known, ok := c.find(h.Name); ok && known.settings == settings {
		return known.hook, nil
	}
	var s hook.Settings
	if err := json.Unmarshal(h.Settings, &s); err != nil {
		return nil, err
	}
	compiled, err := hook.Compile(s)
	if err == nil {
		c.keep(h.Name, compiledHook{settings, compiled})
	}
	return compiled, err
}

func (c *compiledHooks) find(name string) (compiledHook, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.known[name]
	return known, ok
}

func (c *compiledHooks) keep(name string, compiled compiledHook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= mostCompiled {
		c.known = map[string]compiledHook{}
	}
	c.known[name] = compiled
}
