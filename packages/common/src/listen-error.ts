/** "Port 8081 is in use. Set AUTH_PORT to another one." when that is why a service could not start. */
export function explainListenError(error: unknown, variable: string): string | undefined {
  const { code, port } = error as { code?: string; port?: number }
  if (code === 'EADDRINUSE') return `Port ${port} is in use. Set ${variable} to another one.`
  if (code === 'EACCES' && port !== undefined) return `Port ${port} needs more rights. Set ${variable} to another one.`
  return undefined
}
