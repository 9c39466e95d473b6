package troupe

import (
	"github.com/troupe-engine/troupe/api"
	v1 "github.com/troupe-engine/troupe/api/v1"
	"github.com/troupe-engine/troupe/dialect/ork/orkhttp"
	"github.com/troupe-engine/troupe/dialect/pgflow/pgflowhttp"
	"github.com/troupe-engine/troupe/dialect/pocketflow/pocketflowhttp"
)

// dialectFamilies returns the routes of all dialects. A member without a row does not serve that
// dialect.
func dialectFamilies(m api.Member, o orkhttp.Options) []api.Family {
	return []api.Family{
		pocketflowhttp.New(m),
		pgflowhttp.New(m),
		orkhttp.New(m, o),
	}
}

// dialectChannels returns the event channels that clients of dialects subscribe to.
func dialectChannels(m api.Member) map[string]v1.Channel {
	runs := pgflowhttp.Runs{Engine: m.Engine, Store: m.Store, Reader: m.Reader}
	return map[string]v1.Channel{"pgflow:run": runs.Tell}
}

func (e *Engine) orkOptions() orkhttp.Options {
	o := orkhttp.Options{Root: e.cfg.ScriptDir, Workers: e.cfg.OrkWorkers}
	if e.cfg.AllowScripts {
		o.Programs = e.programs
	}
	return o
}
