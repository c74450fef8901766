/**
 * Writes a password credential of Keycloak, the JSON text of an export, in PHC form. Undefined for another text.
 * `secretData` and `credentialData` are JSON in JSON there.
 */
export function phcOfKeycloak(text: string): string | undefined {
  const { secretData, credentialData } = objectOf(text)
  const { value, salt } = objectOf(secretData)
  const { algorithm, hashIterations, additionalParameters } = objectOf(credentialData)
  if (typeof value !== 'string' || typeof salt !== 'string' || typeof algorithm !== 'string') return undefined
  const tail = `$${unpadded(salt)}$${unpadded(value)}`
  if (algorithm === 'argon2') {
    const [type, memory, lanes, version] = ['type', 'memory', 'parallelism', 'version'].map(
      (name) => [objectOf(additionalParameters)[name]].flat()[0],
    )
    if (version !== '1.3') return undefined
    return `$argon2${type}$v=19$m=${memory},t=${hashIterations},p=${lanes}${tail}`
  }
  return /^pbkdf2(-sha\d+)?$/.test(algorithm) ? `$${algorithm}$i=${hashIterations}${tail}` : undefined
}

const unpadded = (base64: string) => base64.replace(/={1,2}$/, '')

function objectOf(given: unknown): Record<string, unknown> {
  try {
    const value: unknown = typeof given === 'string' ? JSON.parse(given) : given
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
