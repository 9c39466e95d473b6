package flow

// Limits keep one task from harming the others. Zero fields mean the default.
type Limits struct {
	Depth      int // of nested scopes
	Units      int // of one step
	Steps      int // of one task, over its whole life
	Window     int // attempts of one step in flight at once
	Deliveries int // of one attempt
	Events     int // of one decision
	Value      int // bytes of one input, output or shared value
}

// DefaultLimits are in force where Limits says nothing.
var DefaultLimits = Limits{
	Depth: 16, Units: 100_000, Steps: 1_000_000, Window: 2_000, Deliveries: 5, Events: 1_000, Value: 1 << 20,
}

// OrDefault fills what is zero.
func (l Limits) OrDefault() Limits {
	d := DefaultLimits
	set := func(to *int, v int) {
		if v > 0 {
			*to = v
		}
	}
	set(&d.Depth, l.Depth)
	set(&d.Units, l.Units)
	set(&d.Steps, l.Steps)
	set(&d.Window, l.Window)
	set(&d.Deliveries, l.Deliveries)
	set(&d.Events, l.Events)
	set(&d.Value, l.Value)
	return d
}
