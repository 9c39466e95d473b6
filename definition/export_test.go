package definition

// Internals for tests.
const (
	MaxEmbedded = maxEmbedded
	MaxProblems = maxProblems
	MaxYAMLText = maxYAMLText
)

// ForgetText makes it a definition without a known text.
func (d *Definition) ForgetText() { d.source = nil }
