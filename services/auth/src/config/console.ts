// The console for administrators, and the numbers that only it shows.
import { boolean, port, type Values, type Variables } from '@services/common/config/variables'
import type { pageVariables } from './pages/page-variables.ts'
import type { serverVariables } from './server.ts'

export const consoleVariables = {
  CONSOLE_ENABLED: boolean(
    'Serve the console for administrators at `/console`, and count what its overview shows. Each process counts only its own events: set it for all, workers too.',
    { default: 'false' },
  ),
  CONSOLE_REQUIRE_MFA: boolean('The console requires a session with a proven second factor.', { default: 'true' }),
  CONSOLE_PORT: port('Port that alone serves the console, kept from the public ingress; unset: that of the API.', {}),
} satisfies Variables

export const consoleSettings = (values: Values<typeof consoleVariables>) => ({
  enabled: values.CONSOLE_ENABLED,
  requiresMfa: values.CONSOLE_REQUIRE_MFA,
  port: values.CONSOLE_PORT,
})

export function consoleProblems(
  values: Values<
    typeof consoleVariables & Pick<typeof serverVariables, 'PORT'> & Pick<typeof pageVariables, 'HOSTED_PAGES_ENABLED'>
  >,
): string[] {
  const { CONSOLE_ENABLED: isEnabled, CONSOLE_PORT: own, PORT: shared, HOSTED_PAGES_ENABLED: hasPages } = values
  return [
    ...(isEnabled && !hasPages
      ? ['AUTH_CONSOLE_ENABLED requires AUTH_HOSTED_PAGES_ENABLED, whose sign-in it uses']
      : []),
    ...(own !== undefined && own === shared ? ['AUTH_CONSOLE_PORT must differ from AUTH_PORT'] : []),
  ]
}
