// Schema of a service's variables in a chart: plain settings and secrets.
import type { ChartFacts } from './chart-facts.ts'
import { matching, object, ref } from './schema-definitions.ts'

/** Endings of names that must not be in a ConfigMap. */
const SECRET =
  /(SECRETS?|PASS|DATABASE_((DIRECT_|REPLICA_)?URL|FALLBACK_URLS)|_KEYS?|ACCESS_KEY_ID|(?<!_PER)_TOKEN|(SMS|MAILER)_TEST_OTP|SMS_HTTP_HEADERS)$/

/** Variables of libraries and Node. */
const FOREIGN =
  '^(OTEL_[A-Z0-9_]+|NODE_[A-Z0-9_]+|AWS_[A-Z0-9_]+|(HTTPS?|NO)_PROXY|TZ|UV_THREADPOOL_SIZE|MALLOC_ARENA_MAX|GLIBC_TUNABLES)$'
const FOREIGN_SECRET = '^(OTEL_EXPORTER_OTLP_([A-Z]+_)?HEADERS|AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN))$'

/** Types the service's variables, except inherited ones without effect. */
export function variablesSchema({ prefix, variables, decided, madeUp }: ChartFacts) {
  const known = Object.entries(variables).filter(
    ([name, { meaning }]) => !decided.includes(name) && !meaning.startsWith('Inherited, without effect'),
  )
  const typed = (entries: typeof known) =>
    Object.fromEntries(
      entries.map(([name, { type }]) => {
        if (name === 'DB_NAMESPACE') return [prefix + name, matching('^([a-z][a-z0-9_]{0,30})?$')]
        return [prefix + name, ref(type === 'integer' || type === 'boolean' ? type : 'text')]
      }),
    )
  const patterns = (...names: (string | undefined)[]) =>
    Object.fromEntries(names.filter((name) => name !== undefined).map((name) => [name, ref('text')]))
  return {
    config: object(typed(known.filter(([name]) => !isSecret(name))), {
      patternProperties: { ...patterns(FOREIGN, madeUp?.plain), [FOREIGN_SECRET]: false },
    }),
    // Any variable may be secret: a URL can contain a password.
    secrets: object(typed(known), { patternProperties: patterns(FOREIGN, madeUp?.plain, madeUp?.secret) }),
  }
}

export const isSecret = (name: string): boolean => SECRET.test(name)
