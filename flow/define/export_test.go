package define

// What tests see of the package beside what everybody does.
const (
	MaxEmbedded = maxEmbedded
	MaxProblems = maxProblems
	MaxYAMLText = maxYAMLText
)

// ForgetText makes it a definition of which nobody knows where it was read from.
func (d *Definition) ForgetText() { d.source = nil }
