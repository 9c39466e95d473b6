package blackbox

func examples(c *client) {}
