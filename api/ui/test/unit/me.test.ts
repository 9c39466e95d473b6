import { expect, test } from 'vitest'
import { may } from '../../src/data/me'

test("a role may do what the server's table allows", () => {
  expect(may('viewer', 'GET /v1/tasks')).toBe(true)
  expect(may('viewer', 'POST /v1/tasks/{task}/signal')).toBe(false)
  expect(may('approver', 'POST /v1/tasks/{task}/signal')).toBe(true)
  expect(may('operator', 'PUT /v1/flows/{flow}')).toBe(false)
  expect(may('author', 'PUT /v1/flows/{flow}')).toBe(true)
  expect(may('author', 'GET /v1/tokens')).toBe(false)
  expect(may('admin', 'GET /v1/tokens')).toBe(true)
  expect(may('worker', 'GET /v1/tasks')).toBe(false)
})

test('a route without a restriction is open to every role', () =>
  expect(may('worker', 'POST /v1/session')).toBe(true))
