import { text, type Values, type Variables } from '@services/common/config'

export const inheritedVariables = {
  OPERATOR_TOKEN: text('Inherited, without effect.'),
  API_ENDPOINT: text('Inherited, without effect.'),
} satisfies Variables

export const inheritedWarnings = (values: Values<typeof inheritedVariables>): string[] =>
  (['OPERATOR_TOKEN', 'API_ENDPOINT'] as const)
    .filter((name) => values[name] !== undefined)
    .map((name) => `AUTH_${name} is inherited and has no effect`)
