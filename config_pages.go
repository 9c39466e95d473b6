package troupe

import (
	"fmt"
	"net/url"
)

// checkPatterns rejects URLs that the pages cannot turn into links.
func (c *Config) checkPatterns() error {
	for _, p := range []struct{ name, pattern string }{{"traces", c.TraceURL}, {"logs", c.LogURL}} {
		u, err := url.Parse(p.pattern)
		if p.pattern != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return fmt.Errorf("the URL of %s is %.200q: write one with http:// or https://, and "+
				"{trace_id} or {task} where they belong", p.name, p.pattern)
		}
	}
	return nil
}
