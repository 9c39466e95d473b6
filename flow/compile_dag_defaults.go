package flow

// settings are what nodes take that say nothing themselves.
type settings struct {
	shape Shape
	def   Defaults
}

func (c *compiler) settings(d *Definition, profile Profile, at *place) settings {
	s := settings{shape: ShapeRunDeps, def: c.defaults(d.Defaults, profile, at.key("defaults"))}
	if profile == ProfileOrk {
		s.shape = ShapeMerged
	}
	s.shape = c.shape(d.InputShape, s.shape, at)
	if profile == ProfilePgflow {
		s.def.Retry = s.def.Retry.or(&RetrySpec{MaxAttempts: 3, Delay: Duration{MS: 5_000}, Backoff: backoffExponential})
	}
	if s.def.Timeout.IsZero() {
		switch profile {
		case ProfilePgflow:
			s.def.Timeout = Duration{MS: 60_000}
		case ProfileOrk:
			s.def.Timeout = Duration{MS: 3_600_000}
		}
	}
	if s.def.Route == "" && s.def.ExecType == "" && profile == ProfilePgflow {
		s.def.Route = routeQueue
	}
	return s
}

// defaults checks what a flow says for its nodes, once and where it stands: nodes do not take over what is wrong.
func (c *compiler) defaults(def Defaults, profile Profile, at *place) Defaults {
	def.Retry = c.retrySpec(def.Retry, profile, at.key("retry"))
	c.timeout(def.Timeout, profile, at.key("timeout"))
	if !c.execType(ExecType(def.ExecType), at) {
		def.ExecType = ""
	}
	if c.route(def.Route, at) == "" {
		def.Route = ""
	}
	def.SkipMode = string(c.skipWord(def.SkipMode, at.key("skip_mode")))
	return def
}

func (c *compiler) shape(word string, otherwise Shape, at *place) Shape {
	switch s := Shape(word); s {
	case "":
		return otherwise
	case ShapeRunDeps, ShapeDeps, ShapeMerged, ShapeMapped:
		return s
	}
	c.errorf(at.key("input_shape"), "unknown word %.80q: write run_deps, deps, merged or mapped", word)
	return otherwise
}
