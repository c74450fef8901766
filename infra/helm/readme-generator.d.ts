declare module '@bitnami/readme-generator-for-helm' {
  export function runReadmeGenerator(options: { values: string; readme: string }): void
}
