"""The official conformance suite against our server: `make conformance`. It needs Node and npm."""
