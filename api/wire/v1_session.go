package wire

// OpenSession is a browser's token.
type OpenSession struct {
	Token string `json:"token" maxLength:"4000" doc:"one of those that the server was started with"`
}

// Me is who asks.
type Me struct {
	Role       string `json:"role" enum:"admin" doc:"what who asks may do: an admin may do everything"`
	NeedsToken bool   `json:"needs_token" doc:"false: everybody who reaches the server may do everything"`
}
