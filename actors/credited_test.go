package actors_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// overtaken is a relay that receives credits after another event.
type overtaken struct {
	*attached.Sessions
	before func()
}

func (o overtaken) Credited(c *engine.Credits) {
	o.before()
	o.Sessions.Credited(c)
}

func TestCreditsOfAMemberReportedGoneMeanwhileAreDropped(t *testing.T) {
	c := newCircuit(nil)
	b := c.join(t, actors.Config{})
	cfg, s := withSessions(t, 0)
	var a *harness
	cfg.Relay = overtaken{s, func() { a.Gone(b.Incarnation(), false) }}
	a = c.join(t, cfg)
	a.Credited(&engine.Credits{Member: b.Incarnation(), Turn: 1, List: []engine.Credit{{Services: []string{"s"}, Workers: 1, Free: 1}}})
	require.False(t, s.Offers(&flow.Exec{Type: flow.ExecRemote, Service: "s"}), "jobs would go there for as long as this member lives")
}
