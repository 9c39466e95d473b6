package hooks

import (
	"encoding/json"
	"sync"

	"github.com/troupe-engine/troupe/flow/hook"
	"github.com/troupe-engine/troupe/persistence"
)

// mostCompiled is the maximum number of cached hooks.
const mostCompiled = 200

// compiledHooks caches compiled hooks, because compilation takes more time than the rest of a
// delivery.
type compiledHooks struct {
	mu     sync.Mutex
	byName map[string]compiledHook
}

type compiledHook struct {
	settings string
	hook     *hook.Hook
}

// compileHook returns the compiled hook. It compiles the hook only if its settings have changed.
func (c *compiledHooks) compileHook(h *persistence.Hook) (*hook.Hook, error) {
	settings := string(h.Settings)
	if known, ok := c.findHook(h.Name); ok && known.settings == settings {
		return known.hook, nil
	}
	var s hook.Settings
	if err := json.Unmarshal(h.Settings, &s); err != nil {
		return nil, err
	}
	compiled, err := hook.Compile(s)
	if err == nil {
		c.storeHook(h.Name, compiledHook{settings, compiled})
	}
	return compiled, err
}

func (c *compiledHooks) findHook(name string) (compiledHook, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.byName[name]
	return known, ok
}

func (c *compiledHooks) storeHook(name string, compiled compiledHook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName == nil || len(c.byName) >= mostCompiled {
		c.byName = map[string]compiledHook{}
	}
	c.byName[name] = compiled
}
